"""The life of one service: engine, API, signals, a successor, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from sampan import i18n
from sampan.errors import SampanError, ServiceError
from sampan.gateway import assembly, handover, listening, local_token, notify
from sampan.gateway.http_server import make_server
from sampan.gateway.readiness import learn, passes_selftest
from sampan.gateway.settings import ServeSettings
from sampan.gateway.succession import Succession


class Life:
    """Of one process. ``inherited``: what a predecessor left, None for a first service."""

    def __init__(
        self,
        settings: ServeSettings,
        listener: socket.socket,
        folder: Path,
        say: Callable[[str], None],
        inherited: handover.Inherited | None,
    ) -> None:
        self._settings = settings
        self._inherited = inherited
        self._listener = listener
        scheme = "https" if settings.files.certificate else "http"
        self._url = listening.url_of(listener, scheme)
        self._say = say
        self._parts = assembly.assemble(settings, folder)
        self._server = make_server(self._parts.app, settings.drain_seconds, settings.files)
        self._stop = asyncio.Event()
        self._may_accept = asyncio.Event()
        self._hurry = asyncio.Event()
        self._reloading: asyncio.Task[None] | None = None
        self._succession = Succession(settings, listener, say, self._yield_to)

    async def run(self) -> None:
        """Until it is told to stop, or has handed over. Raises ServiceError where the engine never becomes ready."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        loop.add_signal_handler(signal.SIGUSR2, self._succession.begin)
        loop.add_signal_handler(signal.SIGUSR1, self._succession.call_off)
        if self._inherited is None:
            # The API answers (503, loading) while the engine loads, so a probe can tell slow from dead.
            self._may_accept.set()
        api = asyncio.create_task(self._serve_api())
        ready = asyncio.create_task(self._start_engine())
        stop = asyncio.create_task(self._stop.wait())
        watch = asyncio.create_task(self._parts.watchdog.run())
        try:
            await asyncio.wait((ready, api, stop), return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
                await asyncio.wait((api, stop), return_when=asyncio.FIRST_COMPLETED)
            if not self._parts.house.retiring:
                self._parts.house.draining = True
                notify.notify(notify.STOPPING)
        finally:
            await self._end(api, ready, stop, watch)
        left = self._server.left_running
        key = "gateway.stopped-early" if left else "gateway.stopped"
        self._say(i18n.text(key, count=left, seconds=f"{self._settings.drain_seconds:g}"))

    async def _serve_api(self) -> None:
        await self._may_accept.wait()
        if self._server.should_exit:
            return
        port = self._listener.getsockname()[1]
        with local_token.published(self._settings.run_folder, port, self._parts.local_token):
            await self._server.serve([self._listener])

    def _on_signal(self) -> None:
        if self._parts.house.retiring and not self._hurry.is_set():
            self._hurry.set()
            return
        if self._stop.is_set():  # asked twice: do not wait for requests in flight
            self._server.force()
        self._stop.set()

    def _on_hangup(self) -> None:
        self._reloading = asyncio.ensure_future(self._reload())

    def _yield_to(self, pid: int) -> None:
        """The successor answers. Whoever hears of it by systemd may rely on this one accepting no more."""
        self._parts.house.retiring = True
        for server in self._server.servers:
            server.close()
        notify.notify(f"MAINPID={pid}")
        self._stop.set()

    async def _take_over(self, from_whom: handover.Inherited) -> None:
        """Accept connections beside the predecessor, then let it go."""
        self._may_accept.set()
        while not self._server.started:
            await asyncio.sleep(0.01)
        from_whom.take_over()

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
        if self._inherited is not None:
            handover.check_room(settings.watch.memory_bytes)
        self._say(i18n.text("gateway.loading", **values))
        await house.engine.start()
        await house.engine.wait_ready(settings.start_seconds)
        await learn(house)
        if not await passes_selftest(house, settings.golden, self._say):
            if self._inherited is not None:
                raise ServiceError("gateway.handover-selftest")
            return
        house.ready = True
        gc.freeze()  # what is loaded now stays: later collections need not look at it
        self._say(i18n.text("gateway.ready", url=f"{self._url}/v1", **values))
        if self._inherited is None:
            notify.notify(notify.READY)
        else:  # systemd knows the service as ready; its main process is told by who hands over
            await self._take_over(self._inherited)

    async def _end(self, api: asyncio.Task[None], *others: asyncio.Task[object]) -> None:
        """First the API, which finishes what is in flight, then the engine that it needs for that."""
        for task in others:
            task.cancel()
        await self._succession.end()
        if self._parts.house.retiring:
            await self._server.retire(self._settings.limits.request_seconds, self._hurry)
        self._server.should_exit = True
        self._may_accept.set()
        try:
            await api
        finally:
            await self._parts.house.engine.stop()
            if self._parts.audit is not None:
                self._parts.audit.close()
