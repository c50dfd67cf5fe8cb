"""One request, one whole answer, over kept connections to a Unix socket: the fast path of short requests.

A general HTTP client costs more CPU than all of the gateway's own work on a short text; here is only what a request
to our own engine needs. Streams go through ``upstream.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import httptools

# cpp-httplib closes an idle connection after 5 s; ours are dropped well before, so none is used while it closes.
_KEEP_SECONDS = 2.0


class Answer(NamedTuple):
    """A whole answer of the engine."""

    status: int
    body: bytes


class Exchange:
    """Connections to one socket; as many as there are requests at a time."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._alarm: asyncio.TimerHandle | None = None

    async def post(self, path: str, body: bytes, seconds: float) -> Answer:
        """The answer. Raises OSError where the engine is lost, TimeoutError after ``seconds`` without a byte.

        A kept connection may be closed by the engine while we write: then nothing was computed, so it is sent again.
        Where the engine died instead, the new connection is refused at once.
        """
        head = f"POST {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body
        kept = self._take()
        if kept is not None:
            try:
                return await self._ask(kept, request, seconds)
            except ConnectionResetError as reset:
                if kept.has_begun:
                    raise
                return await self._once_more(request, seconds, reset)
        return await self._ask(await self._connect(), request, seconds)

    async def _once_more(self, request: bytes, seconds: float, reset: ConnectionResetError) -> Answer:
        """Where nobody listens any more, the engine may have died of what the kept connection brought it."""
        try:
            connection = await self._connect()
        except OSError:
            raise reset from None
        return await self._ask(connection, request, seconds)

    async def _ask(self, connection: _Connection, request: bytes, seconds: float) -> Answer:
        """One timer watches over all: one a request would cost more than the rest of this module."""
        loop = asyncio.get_running_loop()
        if self._alarm is None:
            self._alarm = loop.call_later(seconds, self._look, loop, seconds)
        self._busy.add(connection)
        try:
            return await connection.ask(request, loop.time() + seconds)
        finally:
            self._busy.discard(connection)

    def _look(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        now, self._alarm = loop.time(), None
        for connection in tuple(self._busy):
            if connection.until <= now:
                connection.fail(TimeoutError(f"no answer within {seconds:g} s"))
        left = [connection.until for connection in self._busy if connection.until > now]
        if left:
            self._alarm = loop.call_at(min(left), self._look, loop, seconds)

    def close(self) -> None:
        """Drop the kept connections."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._idle:
            self._idle.pop().drop()

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(lambda: _Connection(loop, self._idle.append), self._socket)
        return connection

    def _take(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh:
                return connection
            connection.drop()
        return None


class _Connection(asyncio.Protocol):
    """One request at a time; gives itself back to the pool when an answer is whole and the engine keeps it open."""

    def __init__(self, loop: asyncio.AbstractEventLoop, give_back: Callable[[_Connection], None]) -> None:
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
