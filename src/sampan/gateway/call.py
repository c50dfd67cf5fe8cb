"""One request on its way: who asks, how it wants to be treated, and what it came to."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Protocol

from starlette.types import Receive, Scope, Send

from sampan.gateway.callers import ANYBODY, Caller
from sampan.gateway.engine import ANY, Ask, Lane
from sampan.gateway.envelope import ApiError
from sampan.gateway.replies import Header

_USABLE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_WANTED = frozenset(
    {
        b"authorization",
        b"content-length",
        b"x-api-key",
        b"x-request-id",
        b"x-request-timeout",
        b"x-sampan-lane",
        b"x-stainless-read-timeout",  # what OpenAI's own client will wait
    }
)
_numbers = count(1)
_boot = os.urandom(4).hex()


class Answer(Protocol):
    """What an endpoint gives back: a Reply, or a stream."""

    status: int
    headers: list[Header]

    async def send(self, send: Send) -> None:
        """Send it."""
        ...


class Call:
    """See above. ``tokens`` and the like are filled by the endpoint, for metrics and the audit log."""

    __slots__ = ("ask", "began", "caller", "code", "completion_tokens", "headers", "id", "receive", "scope", "tokens")

    def __init__(self, scope: Scope, receive: Receive, began: float) -> None:
        self.scope = scope
        self.receive = receive
        self.began = began
        self.headers: dict[bytes, bytes] = {name: value for name, value in scope["headers"] if name in _WANTED}
        self.caller: Caller = ANYBODY
        self.ask: Ask = ANY
        self.tokens = 0
        self.completion_tokens = 0
        self.code = ""
        given = self.headers.get(b"x-request-id", b"").decode("latin-1")
        self.id = given if _USABLE_ID.fullmatch(given) else f"{_boot}-{next(_numbers):x}"

    @property
    def declared_length(self) -> int:
        """The body's length as the client says, 0 where it does not."""
        value = self.headers.get(b"content-length", b"")
        return int(value) if value.isdigit() else 0

    def settle_ask(self, usual_seconds: float, *, bulk: bool) -> Ask:
        """Lane and deadline: the client's wish, within what its key allows. Raises ApiError ``invalid_value``."""
        seconds = usual_seconds
        for name in (b"x-request-timeout", b"x-stainless-read-timeout"):
            if name in self.headers:
                seconds = min(seconds, self._seconds(name))
        wish = self.headers.get(b"x-sampan-lane", b"").decode("latin-1").lower()
        if wish not in ("", *Lane._value2member_map_):
            raise ApiError("invalid_value", field="X-Sampan-Lane", expected="interactive, bulk")
        lane = Lane(wish) if wish else (Lane.BULK if bulk else Lane.INTERACTIVE)
        if self.caller.lane is Lane.BULK:
            lane = Lane.BULK
        self.ask = Ask(lane, self.began + seconds)
        return self.ask

    def _seconds(self, name: bytes) -> float:
        try:
            seconds = float(self.headers[name])
        except ValueError:
            seconds = math.nan
        if seconds > 0:
            return seconds
        if name == b"x-request-timeout":
            raise ApiError("invalid_value", field="X-Request-Timeout", expected="seconds > 0")
        return math.inf


Endpoint = Callable[[Call], Awaitable[Answer]]
