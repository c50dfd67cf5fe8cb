"""One kept connection to the engine's Unix socket, speaking HTTP/1.1."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools

# cpp-httplib closes an idle connection after 5 s; ours are dropped well before, so none is used while it closes.
_KEEP_SECONDS = 2.0


class Answer(NamedTuple):
    """A whole answer of the engine."""

    status: int
    body: bytes


class Connection(asyncio.Protocol):
    """One request at a time; gives itself back to the pool when an answer is whole and the engine keeps it open."""

    def __init__(self, loop: asyncio.AbstractEventLoop, give_back: Callable[[Connection], None]) -> None:
        self._loop = loop
        self._give_back = give_back
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._heard = loop.time()
        self.has_begun = False
        self.until = 0.0  # by the loop's clock: then its answer is too late

    @property
    def is_fresh(self) -> bool:
        """True where it may be used again."""
        return self._transport is not None and self._loop.time() - self._heard < _KEEP_SECONDS

    async def ask(self, request: bytes, until: float) -> Answer:
        """Send and wait. Cancelled or too late, the connection is dropped: by that the engine stops computing."""
        if self._transport is None:
            raise ConnectionResetError
        self._answer = self._loop.create_future()
        self._pieces.clear()
        self.has_begun = False
        self.until = until
        self._transport.write(request)
        try:
            return await self._answer
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def fail(self, error: OSError) -> None:
        """Whoever waits for an answer gets the error."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass of it

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self.has_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.fail(ConnectionAbortedError(str(error)))
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._transport = None
        self.fail(ConnectionResetError(str(exc or "closed by the engine")))

    # httptools
    def on_body(self, body: bytes) -> None:
        """See httptools."""
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """See httptools."""
        if self._answer is None or self._answer.done():
            return
        self._answer.set_result(Answer(self._parser.get_status_code(), b"".join(self._pieces)))
        self._heard = self._loop.time()
        if self._parser.should_keep_alive():
            self._give_back(self)
        else:
            self.drop()
