"""The HTTP client to an engine on a Unix socket: whole answers by ``exchange.py``, streams and probes by aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp

from sampan.gateway.connection import Answer
from sampan.gateway.engine import EngineState, EngineTimeoutError, EngineUnavailableError
from sampan.gateway.exchange import Exchange

# cpp-httplib closes an idle connection after 5 s; ours are dropped well before, so none is used while it closes.
_KEEP_ALIVE_SECONDS = 2.0
_PROBE_SECONDS = 5.0
_JSON = {"Content-Type": "application/json"}
_NO_LIMIT = 0  # aiohttp: as many connections as there are requests; admission bounds them, not the client
_CLOSED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
_REFUSED = (ConnectionRefusedError, FileNotFoundError)  # nobody listens: the engine has not seen the request
_LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError)


class UnixClient:
    """Sends JSON to one engine. ``state`` tells what to say of the engine where the connection fails."""

    def __init__(self, socket: Path, state: Callable[[], EngineState], seconds: float) -> None:
        self._socket = socket
        self._state = state
        self._seconds = seconds
        self._exchange = Exchange(socket, seconds)
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.UnixConnector(
                path=str(self._socket), limit=_NO_LIMIT, keepalive_timeout=_KEEP_ALIVE_SECONDS
            )
            self._session = aiohttp.ClientSession(
                "http://engine",
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_read=self._seconds),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=2**18,
            )
        return self._session

    async def post(self, path: str, body: bytes) -> Answer:
        """The whole answer. Raises EngineUnavailableError, EngineTimeoutError."""
        try:
            return await self._exchange.post(path, body)
        except TimeoutError as error:  # before OSError: it is one
            raise EngineTimeoutError(self._seconds) from error
        except _REFUSED as error:
            raise EngineUnavailableError(self._state(), reached=False) from error
        except OSError as error:
            raise EngineUnavailableError(self._state()) from error

    async def get(self, path: str) -> Answer:
        """The whole answer of a GET. Raises EngineUnavailableError, EngineTimeoutError."""
        try:
            async with self._open().get(path) as response:
                return Answer(response.status, await response.read())
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise EngineTimeoutError(self._seconds) from error
        except _LOST as error:
            raise EngineUnavailableError(self._state()) from error

    async def open(self, path: str, body: bytes) -> aiohttp.ClientResponse:
        """Headers have come, the body is still to be read. Raises EngineUnavailableError, EngineTimeoutError."""
        try:
            return await self._send_once_more(path, body)
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise EngineTimeoutError(self._seconds) from error
        except _LOST as error:
            raise EngineUnavailableError(self._state()) from error

    async def _send_once_more(self, path: str, body: bytes) -> aiohttp.ClientResponse:
        """A kept connection may be closed by the engine while we write: then nothing was computed, so send again.

        Where the engine died instead, the second connection is refused at once.
        """
        try:
            return await self._open().post(path, data=body, headers=_JSON)
        except _CLOSED as error:
            if isinstance(error, (aiohttp.ClientConnectorError, TimeoutError)):
                raise
            return await self._open().post(path, data=body, headers=_JSON)

    async def chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body as it comes, unbuffered. Raises EngineUnavailableError, EngineTimeoutError."""
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise EngineTimeoutError(self._seconds) from error
        except _LOST as error:
            raise EngineUnavailableError(self._state()) from error

    async def probe(self, path: str) -> int | None:
        """The status of a GET, None where nobody answers."""
        limit = aiohttp.ClientTimeout(total=_PROBE_SECONDS)
        try:
            async with self._open().get(path, timeout=limit) as response:
                return response.status
        except (asyncio.TimeoutError, TimeoutError, OSError, aiohttp.ClientError):
            return None

    async def close(self) -> None:
        """Drop all connections."""
        self._exchange.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
