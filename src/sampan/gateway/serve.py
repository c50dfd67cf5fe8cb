"""Runs the service: the port, the engine, the API, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvloop

from sampan import i18n
from sampan.errors import SampanError
from sampan.gateway import assembly, listening, notify
from sampan.gateway.http_server import make_server
from sampan.gateway.logs import log_to_stderr
from sampan.gateway.readiness import golden_results
from sampan.gateway.run_folder import choose_base, run_folder
from sampan.gateway.settings import ServeSettings

logger = logging.getLogger("sampan.gateway")


def serve(settings: ServeSettings, *, say: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then finish what runs (at most ``drain_seconds``) and return.

    ``say`` receives what a person should read (default: stderr). Raises ServiceError where the port is taken
    (then no engine is started) or the engine does not become ready; UsageError where the address is open and no key
    is set; BadInputError or FilesystemError for files of the operator.
    """
    speak = say or _to_stderr
    log_to_stderr(json=settings.json_logs)
    assembly.read_keys(settings)
    if not listening.is_loopback(settings.host) and settings.files.certificate is None:
        speak(i18n.text("warning.gateway.open-host", host=settings.host))
    with (
        listening.listen(settings.host, settings.port) as listener,
        run_folder(settings.run_folder or choose_base(os.environ)) as folder,
    ):
        uvloop.run(_Service(settings, listener, folder, speak).run())


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class _Service:
    def __init__(
        self, settings: ServeSettings, listener: socket.socket, folder: Path, say: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._listener = listener
        scheme = "https" if settings.files.certificate else "http"
        self._url = listening.url_of(listener, scheme)
        self._say = say
        self._parts = assembly.assemble(settings, folder)
        self._server = make_server(self._parts.app, settings.drain_seconds, settings.files)
        self._stop = asyncio.Event()
        self._reloading: asyncio.Task[None] | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        # The API answers (503, loading) while the engine loads, so a probe can tell slow from dead.
        api = asyncio.create_task(self._server.serve([self._listener]))
        ready = asyncio.create_task(self._start_engine())
        stop = asyncio.create_task(self._stop.wait())
        watch = asyncio.create_task(self._parts.watchdog.run())
        try:
            await asyncio.wait((ready, api, stop), return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
                await asyncio.wait((api, stop), return_when=asyncio.FIRST_COMPLETED)
            self._parts.house.draining = True
            notify.notify(notify.STOPPING)
        finally:
            await self._end(api, ready, stop, watch)
        left = self._server.left_running
        key = "gateway.stopped-early" if left else "gateway.stopped"
        self._say(i18n.text(key, count=left, seconds=f"{self._settings.drain_seconds:g}"))

    def _on_signal(self) -> None:
        if self._stop.is_set():  # asked twice: do not wait for requests in flight
            self._server.force()
        self._stop.set()

    def _on_hangup(self) -> None:
        self._reloading = asyncio.ensure_future(self._reload())

    async def _reload(self) -> None:
        """Read the files of the operator again; where one is bad, what was in force stays."""
        try:
            await assembly.reload(self._settings, self._parts)
            self._say(i18n.text("gateway.reloaded"))
        except (SampanError, OSError) as error:
            self._say(i18n.text("gateway.not-reloaded", detail=str(error)))

    async def _start_engine(self) -> None:
        settings, house = self._settings, self._parts.house
        values = {"model": settings.model.id, "variant": settings.variant, "threads": settings.threads}
        house.ready = False
        self._say(i18n.text("gateway.loading", **values))
        await house.engine.start()
        await house.engine.wait_ready(settings.start_seconds)
        if not await self._passes_selftest():
            return
        house.ready = True
        gc.freeze()  # what is loaded now stays: later collections need not look at it
        self._say(i18n.text("gateway.ready", url=f"{self._url}/v1", **values))
        notify.notify(notify.READY)

    async def _passes_selftest(self) -> bool:
        golden, house = self._settings.golden, self._parts.house
        if golden is None or not (golden.embeddings or golden.chats):
            return True
        results = await golden_results(house.engine, golden)
        failed = [result for result in results if not result.ok]
        house.meter.selftest_ok = not failed
        if failed:
            worst = min(failed, key=lambda result: result.score)
            values = {"count": len(failed), "score": f"{worst.score:.4f}", "minimum": f"{worst.minimum:g}"}
            self._say(i18n.text("gateway.selftest-failed", text=worst.text[:80], **values))
        return not failed

    async def _end(self, api: asyncio.Task[None], *others: asyncio.Task[object]) -> None:
        """First the API, which finishes what is in flight, then the engine that it needs for that."""
        for task in others:
            task.cancel()
        self._server.should_exit = True
        try:
            await api
        finally:
            await self._parts.house.engine.stop()
            if self._parts.audit is not None:
                self._parts.audit.close()
