"""Runs the service: the port, the engine, the API, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
import uvloop

from sampan import i18n
from sampan.gateway import listening, notify
from sampan.gateway.app import create_app
from sampan.gateway.llama_server import LlamaCommand, LlamaServer
from sampan.gateway.run_folder import SOCKET_NAME, choose_base, run_folder
from sampan.gateway.settings import ServeSettings

logger = logging.getLogger("sampan.gateway")
# Clients keep idle connections for 5 s (httpx) to 60 s (proxies); who closes first must be the client.
_KEEP_ALIVE_SECONDS = 75
_CANCEL_SECONDS = 2.0  # for cancelled requests to close their connections to the engine


class _Server(uvicorn.Server):
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


def serve(settings: ServeSettings, *, say: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then finish what runs (at most ``drain_seconds``) and return.

    ``say`` receives what a person should read (default: stderr). Raises ServiceError where the port is taken
    (then no engine is started) or the engine does not become ready.
    """
    speak = say or _to_stderr
    _log_to_stderr()
    if not listening.is_loopback(settings.host):
        speak(i18n.text("warning.gateway.open-host", host=settings.host))
    with (
        listening.listen(settings.host, settings.port) as listener,
        run_folder(settings.run_folder or choose_base(os.environ)) as folder,
    ):
        uvloop.run(_Service(settings, listener, folder, speak).run())


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _log_to_stderr() -> None:
    """The engine's output and our own log, for journald or the terminal; the application's own choice wins."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(levelname).1s %(name)s %(message)s", stream=sys.stderr)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)


class _Service:
    def __init__(
        self, settings: ServeSettings, listener: socket.socket, folder: Path, say: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._url = listening.url_of(listener)
        self._say = say
        command = LlamaCommand(
            executable=settings.executable,
            variant=settings.variant,
            weights=settings.weights,
            socket=folder / SOCKET_NAME,
            settings=settings.engine,
            threads=settings.threads,
            model_id=settings.model.id,
        )
        self._engine = LlamaServer(command, request_seconds=settings.limits.request_seconds)
        self._server = _Server(self._config())
        self._stop = asyncio.Event()

    def _config(self) -> uvicorn.Config:
        settings = self._settings
        return uvicorn.Config(
            create_app(self._engine, settings.model, settings.limits),
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        # The API answers (503, loading) while the engine loads, so a probe can tell slow from dead.
        api = asyncio.create_task(self._server.serve([self._listener]))
        ready = asyncio.create_task(self._start_engine())
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait((ready, api, stop), return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
                await asyncio.wait((api, stop), return_when=asyncio.FIRST_COMPLETED)
            notify.notify(notify.STOPPING)
        finally:
            await self._end(api, ready, stop)
        left = self._server.left_running
        key = "gateway.stopped-early" if left else "gateway.stopped"
        self._say(i18n.text(key, count=left, seconds=f"{self._settings.drain_seconds:g}"))

    def _on_signal(self) -> None:
        if self._stop.is_set():  # asked twice: do not wait for requests in flight
            self._server.force()
        self._stop.set()

    async def _start_engine(self) -> None:
        settings = self._settings
        values = {"model": settings.model.id, "variant": settings.variant, "threads": settings.threads}
        self._say(i18n.text("gateway.loading", **values))
        await self._engine.start()
        await self._engine.wait_ready(settings.start_seconds)
        self._say(i18n.text("gateway.ready", url=f"{self._url}/v1", **values))
        notify.notify(notify.READY)

    async def _end(self, api: asyncio.Task[None], *others: asyncio.Task[object]) -> None:
        """First the API, which finishes what is in flight, then the engine that it needs for that."""
        for task in others:
            task.cancel()
        self._server.should_exit = True
        try:
            await api
        finally:
            await self._engine.stop()
