"""Runs the service: the port, the engine, the API, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import uvloop

from sampan import i18n
from sampan.gateway import listening, notify
from sampan.gateway.app import create_app
from sampan.gateway.http_server import make_server
from sampan.gateway.llama_server import LlamaCommand, LlamaServer
from sampan.gateway.run_folder import SOCKET_NAME, choose_base, run_folder
from sampan.gateway.settings import ServeSettings

logger = logging.getLogger("sampan.gateway")


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
        app = create_app(self._engine, replace(settings.model, created=int(time.time())), settings.limits)
        self._server = make_server(app, settings.drain_seconds)
        self._stop = asyncio.Event()

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
        gc.freeze()  # what is loaded now stays: later collections need not look at it
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
