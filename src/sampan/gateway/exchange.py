"""One request, one whole answer, over kept connections to a Unix socket: the fast path of short requests.

A general HTTP client does much that a request to our own engine does not need. Streams go through ``upstream.py``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from sampan.gateway.connection import Answer, Connection


class Exchange:
    """Connections to one socket; as many as there are requests at a time, each answered within ``seconds``."""

    def __init__(self, socket: Path, seconds: float) -> None:
        self._socket = str(socket)
        self._seconds = seconds
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._alarm: asyncio.TimerHandle | None = None

    async def post(self, path: str, body: bytes) -> Answer:
        """The answer. Raises OSError where the engine is lost, TimeoutError where it takes too long.

        A kept connection may be closed by the engine while we write: then nothing was computed, so it is sent again.
        Where the engine died instead, the new connection is refused at once.
        """
        head = f"POST {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body
        kept = self._take()
        if kept is not None:
            try:
                return await self._ask(kept, request)
            except ConnectionResetError as reset:
                if kept.has_begun:
                    raise
                return await self._once_more(request, reset)
        return await self._ask(await self._connect(), request)

    async def _once_more(self, request: bytes, reset: ConnectionResetError) -> Answer:
        """Where nobody listens any more, the engine may have died of what the kept connection brought it."""
        try:
            connection = await self._connect()
        except OSError:
            raise reset from None
        return await self._ask(connection, request)

    async def _ask(self, connection: Connection, request: bytes) -> Answer:
        """One timer watches over all: they all have the same time, so the first to begin is the first to be late."""
        loop = asyncio.get_running_loop()
        if self._alarm is None:
            self._alarm = loop.call_later(self._seconds, self._look, loop)
        self._busy.add(connection)
        try:
            return await connection.ask(request, loop.time() + self._seconds)
        finally:
            self._busy.discard(connection)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now, self._alarm = loop.time(), None
        for connection in tuple(self._busy):
            if connection.until <= now:
                connection.fail(TimeoutError(f"no answer within {self._seconds:g} s"))
        left = [connection.until for connection in self._busy if connection.until > now]
        if left:
            self._alarm = loop.call_at(min(left), self._look, loop)

    def close(self) -> None:
        """Drop the kept connections."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._idle:
            self._idle.pop().drop()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(lambda: Connection(loop, self._idle.append), self._socket)
        return connection

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh:
                return connection
            connection.drop()
        return None
