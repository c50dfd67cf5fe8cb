"""What the API needs of an engine, whatever it is made of.

An engine is a process of its own, reached over a Unix socket and supervised: llama-server now, Python workers later.
Admission, batching and caching can be engines around an engine, so endpoints never change for them. Values are named
tuples: they are made several times a request, and frozen dataclasses set each field by a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

TextOrTokens = str | tuple[int, ...]


class EngineState(str, Enum):
    """Where an engine is in its life. Only ``READY`` answers."""

    STARTING = "starting"  # the process is there, its socket not yet
    LOADING = "loading"  # it listens and reads its weights
    READY = "ready"
    RESTARTING = "restarting"  # it died and waits for its next start
    FAILED = "failed"  # it never became ready
    STOPPED = "stopped"


class EngineStatus(NamedTuple):
    """What ``/health`` tells of the engine. ``restarts`` counts since the start of the service."""

    state: EngineState
    restarts: int
    variant: str


class Embedded(NamedTuple):
    """The engine's answer for one request: per text, in the order asked, packed little-endian float32."""

    vectors: tuple[bytes, ...]
    tokens: int  # of all texts together, their starts and ends included


class Ranked(NamedTuple):
    """Raw scores (logits) of a reranker, one per document in the order asked."""

    scores: tuple[float, ...]
    tokens: int


class Lane(str, Enum):
    """Who waits for the answer: a person, or a job that has time."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


class Ask(NamedTuple):
    """How a request wants to be treated. ``deadline``: seconds of the loop's clock, None without one."""

    lane: Lane = Lane.INTERACTIVE
    deadline: float | None = None


ANY = Ask()


class Generation(Protocol):
    """A running generation: its bytes as the engine sends them, already in OpenAI's form."""

    @property
    def content_type(self) -> str:
        """``application/json`` or ``text/event-stream``."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The pieces as they come. Raises EngineFault where the engine breaks off."""
        ...

    async def close(self) -> None:
        """End it; where it still runs, the engine stops computing."""
        ...


class Engine(Protocol):
    """One model, ready to answer. Cancelling a call ends its work in the engine."""

    @property
    def status(self) -> EngineStatus:
        """As known now; cheap."""
        ...

    async def start(self) -> None:
        """Start the process and its supervision; returns before it is ready."""
        ...

    async def wait_ready(self, seconds: float) -> None:
        """Return when it answers. Raises ServiceError where it dies first or takes longer."""
        ...

    async def embed(self, inputs: Sequence[TextOrTokens], ask: Ask = ANY, /) -> Embedded:
        """Vectors for texts or token ids. Raises EngineFault."""
        ...

    async def generate(self, path: str, body: bytes, ask: Ask = ANY, /) -> Generation:
        """Forward an OpenAI request (``/v1/chat/completions``, ``/v1/completions``). Raises EngineFault."""
        ...

    async def rerank(self, query: str, documents: Sequence[str], ask: Ask = ANY, /) -> Ranked:
        """The relevance of each document to the query. Raises EngineFault."""
        ...

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """How many tokens ``embed`` would make of each, start and end included. Raises EngineFault."""
        ...

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """The model's own token ids; ``special``: with the start and end that ``embed`` adds. Raises EngineFault."""
        ...

    async def takes_tools(self) -> bool:
        """Whether the model's chat template has a place for tools. Raises EngineFault."""
        ...

    async def stop(self) -> None:
        """End the process and its supervision; may be called at any time and twice."""
        ...


class EngineFault(Exception):
    """A request that the engine did not answer. The API layer gives each kind its status and code."""


class EngineUnavailableError(EngineFault):
    """There is no ready engine now, or it died with the request in it. ``reached``: it may have seen the request."""

    def __init__(self, state: EngineState, *, reached: bool = True) -> None:
        super().__init__(state.value)
        self.state = state
        self.reached = reached


class EngineTimeoutError(EngineFault):
    """No answer within the limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:g} s")
        self.seconds = seconds


class EngineRefusedError(EngineFault):
    """The engine says that the request is wrong."""


class EngineBrokenError(EngineFault):
    """The engine answered with an error of its own, or with something that is no answer."""


class BadVectorError(EngineFault):
    """A vector that is none: not finite, of the wrong length, or not of length one where it must be.

    ``index``: of the text in its request.
    """

    def __init__(self, why: str, index: int = 0) -> None:
        super().__init__(why)
        self.index = index


class InputTooLongError(EngineFault):
    """A text has more tokens than one pass takes. ``tokens`` None where the engine did not say."""

    def __init__(self, tokens: int | None, limit: int | None, index: int | None = None) -> None:
        super().__init__(f"{tokens} of {limit} tokens")
        self.tokens = tokens
        self.limit = limit
        self.index = index


class DeadlineError(EngineFault):
    """The answer could no longer be in time; the work was dropped before it reached the engine."""
