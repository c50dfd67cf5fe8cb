"""uvicorn, told how to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

# Clients keep idle connections for 5 s (httpx) to 60 s (proxies); who closes first must be the client.
_KEEP_ALIVE_SECONDS = 75
_CANCEL_SECONDS = 2.0  # for cancelled requests to close their connections to the engine


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

    def force(self) -> None:
        """End now: requests in flight are broken off."""
        self.force_exit = True
        self.left_running = len(self.server_state.tasks)
        for task in self.server_state.tasks:
            task.cancel()


def make_server(app: ASGIApp, drain_seconds: float) -> ApiServer:
    """A server for ``app`` on sockets that the caller hands to ``serve``."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(drain_seconds)),
    )
    return ApiServer(config)
