"""How much work may be in the house: bounded by requests, tokens and bytes of bodies.

Over it a request is refused at once with 429 and the time after which it may come again: a queue that only grows
answers nobody in time.
"""

from __future__ import annotations

import math
from types import TracebackType

from sampan.gateway.envelope import ApiError
from sampan.gateway.settings import Limits

_FIRST_RATE = 2000.0  # tokens a second, until there is a measurement
_LONGEST_WAIT = 60
_MEMORY = 0.9  # how much of the old rate a new measurement leaves


class Admitted:
    """A context manager of its own: a generator in its place would be made anew at each request."""

    __slots__ = ("_admission", "_tokens")

    def __init__(self, admission: Admission, tokens: int) -> None:
        self._admission = admission
        self._tokens = tokens

    def __enter__(self) -> None:
        self._admission.enter(self._tokens)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._admission.leave(self._tokens)


class Admission:
    """Counts what is inside. One event loop, no locks."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.requests = 0
        self.tokens = 0
        self.body_bytes = 0
        self.refused = 0
        self._rate = _FIRST_RATE

    def admitted(self, tokens: int) -> Admitted:
        """Inside while the block runs. Raises ApiError ``queue_full``.

        One request alone may have more tokens than the bound: else it could never be answered.
        """
        return Admitted(self, tokens)

    def enter(self, tokens: int) -> None:
        """See ``admitted``."""
        limits = self.limits
        if self.requests >= limits.queue_requests or (self.tokens and self.tokens + tokens > limits.queue_tokens):
            self.refused += 1
            raise ApiError("queue_full", requests=self.requests, tokens=self.tokens, retry_after=self.wait())
        self.requests += 1
        self.tokens += tokens

    def leave(self, tokens: int) -> None:
        """See ``admitted``."""
        self.requests -= 1
        self.tokens -= tokens

    def hold_body(self, size: int) -> None:
        """Make room for a body in memory. Raises ApiError ``queue_full``. Give it back by ``drop_body``."""
        if self.body_bytes and self.body_bytes + size > self.limits.bodies_bytes:
            self.refused += 1
            raise ApiError("queue_full", requests=self.requests, tokens=self.tokens, retry_after=self.wait())
        self.body_bytes += size

    def drop_body(self, size: int) -> None:
        """The body is no longer held."""
        self.body_bytes -= size

    def measured(self, tokens: int, seconds: float) -> None:
        """The engine took ``seconds`` for ``tokens``."""
        if seconds > 0 and tokens:
            self._rate = _MEMORY * self._rate + (1 - _MEMORY) * tokens / seconds

    def wait(self) -> int:
        """Seconds until what is inside should be done."""
        return min(_LONGEST_WAIT, max(1, math.ceil(self.tokens / max(1.0, self._rate))))
