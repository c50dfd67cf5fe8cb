"""Keeps one engine process running: start, wait until it answers, start again when it dies.

Knows nothing of llama-server: it is handed how to start a child and how to ask whether it answers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from sampan.errors import ServiceError
from sampan.gateway.child import Child, describe_end
from sampan.gateway.engine import EngineState

logger = logging.getLogger("sampan.gateway")
_TAIL_SHOWN = 12


@dataclass(frozen=True)
class Pace:
    """Seconds of the supervision. A child that ran ``steady`` seconds starts the back-off anew."""

    first_back_off: float = 0.25
    longest_back_off: float = 30.0
    steady: float = 60.0
    poll: float = 0.05
    slow_poll: float = 0.5
    grace: float = 5.0


USUAL_PACE = Pace()


class Supervisor:
    """One child at a time. ``probe`` gives the state that a living child is in: STARTING, LOADING or READY."""

    def __init__(
        self,
        name: str,
        spawn: Callable[[], Child],
        probe: Callable[[], Awaitable[EngineState]],
        pace: Pace = USUAL_PACE,
    ) -> None:
        self.state = EngineState.STOPPED
        self.restarts = 0
        self._name = name
        self._spawn = spawn
        self._probe = probe
        self._pace = pace
        self._child: Child | None = None
        self._refusal: OSError | None = None  # why the last child could not even be started
        self._task: asyncio.Task[None] | None = None
        self._settled: asyncio.Future[None] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, None where there is none."""
        return self._child.pid if self._child is not None and self._child.returncode is None else None

    def start(self) -> None:
        """Begin; returns at once."""
        self.state = EngineState.STARTING
        self._settled = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name="supervisor")

    async def wait_ready(self, seconds: float) -> None:
        """Wait for the first READY. Raises ServiceError where the first child dies before, or takes longer."""
        if self._settled is None:
            raise ServiceError("gateway.engine-stopped")
        try:
            await asyncio.wait_for(asyncio.shield(self._settled), seconds)
        except (asyncio.TimeoutError, TimeoutError) as error:
            tail = _shown(self._child)
            raise ServiceError(
                "gateway.engine-slow", variant=self._name, seconds=f"{seconds:g}", tail=tail
            ) from error

    def kill(self) -> None:
        """End the child at once, as if it had died; it is started again."""
        if self._child is not None and self.state is EngineState.READY:
            self.state = EngineState.RESTARTING
            self._child.kill()

    async def stop(self) -> None:
        """End the child and the supervision."""
        failed = self.state is EngineState.FAILED
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        if self._child is not None:
            await self._child.end(self._pace.grace)
        self.state = EngineState.FAILED if failed else EngineState.STOPPED
        if self._settled is not None and not self._settled.done():
            self._settled.set_exception(ServiceError("gateway.engine-stopped"))
            self._settled.exception()  # nobody has to ask

    async def _run(self) -> None:
        back_off = self._pace.first_back_off
        while True:
            began = time.monotonic()
            end = await self._one_life()
            if self._settled is not None and not self._settled.done():
                self.state = EngineState.FAILED
                self._settled.set_exception(self._failure(end))
                return
            if time.monotonic() - began >= self._pace.steady:
                back_off = self._pace.first_back_off
            self.state = EngineState.RESTARTING
            logger.error("engine %s ended (%s); next start in %.2f s", self._name, end, back_off)
            await asyncio.sleep(back_off)
            back_off = min(back_off * 2, self._pace.longest_back_off)
            self.restarts += 1

    def _failure(self, end: str) -> ServiceError:
        """Why the first child was never ready."""
        refusal = self._refusal
        if refusal is not None and refusal.filename:  # exec failed; a fork that fails for memory names no file
            detail = refusal.strerror or end
            return ServiceError("gateway.engine-not-run", path=str(refusal.filename), detail=detail)
        tail = _shown(self._child) or "    -"
        return ServiceError("gateway.engine-failed", variant=self._name, end=end, tail=tail)

    async def _one_life(self) -> str:
        """From start to end of one child; how it ended."""
        try:
            child = self._child = self._spawn()
        except OSError as error:
            self._refusal = error
            return str(error)
        watch = asyncio.create_task(self._watch_until_ready(child))
        try:
            return describe_end(await child.wait())
        finally:
            watch.cancel()

    async def _watch_until_ready(self, child: Child) -> None:
        pause = self._pace.poll
        while child.returncode is None:
            state = await self._probe()
            if child.returncode is not None:
                return
            self.state = state
            if state is EngineState.READY:
                if self._settled is not None and not self._settled.done():
                    self._settled.set_result(None)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, self._pace.slow_poll)


def _shown(child: Child | None) -> str:
    return "\n".join(f"    {line}" for line in (child.tail if child else ())[-_TAIL_SHOWN:])
