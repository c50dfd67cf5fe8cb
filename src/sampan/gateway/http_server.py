"""uvicorn, told how to end, and hardened against clients that are slow on purpose."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sampan.errors import BadInputError
from sampan.gateway.one_write import OneWrite
from sampan.gateway.settings import Files

# Clients keep idle connections for 5 s (httpx) to 60 s (proxies); who closes first must be the client.
_KEEP_ALIVE_SECONDS = 75
_CANCEL_SECONDS = 2.0  # for cancelled requests to close their connections to the engine
_HEADER_SECONDS = 20.0  # from the connection, or a request's first byte, to the end of its headers
_HEADER_BYTES = 64 * 1024
_RETIRING_POLL_SECONDS = 0.05
_UNREAD_SECONDS = 120  # an answer that the client's machine does not take


class GuardedProtocol(HttpToolsProtocol):
    """Closes a connection whose headers take too long or are too large; uvicorn itself has no such limit."""

    header_seconds = _HEADER_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(cast("asyncio.Transport", OneWrite(transport, self)))
        self._in_headers = True
        self._header_bytes = 0
        self._alarm: asyncio.TimerHandle | None = self.loop.call_later(self.header_seconds, self._too_slow)
        end = transport.get_extra_info("socket")
        if end is not None and end.family != socket.AF_UNIX:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_SECONDS * 1000)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        super().data_received(data)
        if not self._in_headers:
            return
        self._header_bytes += len(data)
        if self._header_bytes > _HEADER_BYTES:
            self._too_slow()
        elif self._alarm is None:
            self._alarm = self.loop.call_later(self.header_seconds, self._too_slow)

    def on_message_begin(self) -> None:
        """See httptools."""
        super().on_message_begin()
        self._in_headers = True
        self._header_bytes = 0

    def on_headers_complete(self) -> None:
        """See httptools."""
        self._in_headers = False
        self._disarm()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._disarm()
        super().connection_lost(exc)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _too_slow(self) -> None:
        self._disarm()
        self.transport.abort()


class ApiServer(uvicorn.Server):
    """uvicorn without its signal handling: it would end the process by the signal again, and so not with 0."""

    left_running = 0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is in flight; count and end what the time limit leaves."""
        await super().shutdown(sockets)
        left = tuple(self.server_state.tasks)
        self.left_running += len(left)
        if left:
            await asyncio.wait(left, timeout=_CANCEL_SECONDS)

    async def retire(self, seconds: float, hurry: asyncio.Event) -> None:
        """Accept nothing new; return when every connection had its last answer, after ``seconds``, or on ``hurry``.

        Kept connections that wait are not closed: a request may be on its way in them.
        """
        for server in self.servers:
            server.close()
        until = time.monotonic() + seconds
        while self.server_state.connections and time.monotonic() < until and not hurry.is_set():
            await asyncio.sleep(_RETIRING_POLL_SECONDS)

    def force(self) -> None:
        """End now: requests in flight are broken off."""
        self.force_exit = True
        self.left_running = len(self.server_state.tasks)
        for task in self.server_state.tasks:
            task.cancel()


def make_server(app: ASGIApp, drain_seconds: float, files: Files = Files()) -> ApiServer:  # noqa: B008  (frozen)
    """A server for ``app`` on sockets that the caller hands to ``serve``. Raises BadInputError ``gateway.tls``."""
    more: dict[str, Any] = {}
    if files.certificate is not None or files.certificate_key is not None:
        _check_tls(files)
        more = {"ssl_certfile": files.certificate, "ssl_keyfile": files.certificate_key}
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(drain_seconds)),
        **more,
    )
    return ApiServer(config)


def _check_tls(files: Files) -> None:
    """Said before an engine is started."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # an encrypted key fails with the empty password, where it would else ask for one at a terminal
        context.load_cert_chain(files.certificate or "", files.certificate_key, password="")
    except (OSError, ssl.SSLError) as error:
        detail = error.strerror or str(error)
        raise BadInputError("gateway.tls", path=str(files.certificate or "-"), detail=detail) from error
