"""Watches a living engine: one that hangs is killed, one that leaks is drained; the supervisor starts it again."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Protocol

from sampan.gateway import process_facts
from sampan.gateway.batching import Batching
from sampan.gateway.engine import EngineState
from sampan.gateway.settings import Watch

logger = logging.getLogger("sampan.gateway")
_UNKNOWN = 10
_TIMES = 20
_LOOKS_AWAY = 3  # probes in a row that a ready engine does not answer


class Restartable(Protocol):
    """What the watchdog needs of an engine beside the Engine protocol."""

    @property
    def pid(self) -> int | None:
        """Its process id."""
        ...

    async def answers(self) -> bool:
        """Whether it answers a probe now."""
        ...

    def kill(self) -> None:
        """End the process at once; its supervision starts it again."""
        ...


class Watchdog:
    """One engine's, seen through its batching. ``run`` until cancelled."""

    def __init__(
        self, engine: Restartable, batching: Batching, watch: Watch, *, drain_seconds: float, every: float = 2.0
    ) -> None:
        self._engine = engine
        self._batching = batching
        self._watch = watch
        self._drain_seconds = drain_seconds
        self._every = every
        self._unanswered = 0

    async def run(self) -> None:
        """Look every few seconds."""
        while True:
            await asyncio.sleep(self._every)
            if self._batching.status.state is not EngineState.READY:
                self._unanswered = 0
                continue
            await self._look()

    async def _look(self) -> None:
        took = self._batching.pass_seconds
        if took > self._patience():
            self._kill(f"a pass runs for {took:.0f} s")
            return
        self._unanswered = 0 if await self._engine.answers() else self._unanswered + 1
        if self._unanswered >= _LOOKS_AWAY:
            self._kill(f"{self._unanswered} probes without an answer")
            return
        await self._look_at_memory()

    def _patience(self) -> float:
        """As set, but no less than many times what passes took: an emulated CPU needs minutes for what others do at
        once. Before the first pass nothing is known.
        """
        longest = self._batching.longest_pass_seconds
        return self._watch.hung_seconds * (1 if longest else _UNKNOWN) + _TIMES * longest

    def _kill(self, why: str) -> None:
        logger.error("engine is taken for lost: %s", why)
        self._unanswered = 0
        self._engine.kill()

    async def _look_at_memory(self) -> None:
        limit, pid = self._watch.memory_bytes, self._engine.pid
        used = process_facts.resident_bytes(Path(f"/proc/{pid}")) if limit and pid else None
        if limit and used and used > limit:
            logger.warning("engine uses %d MiB of %d MiB: started again", used >> 20, limit >> 20)
            async with self._batching.quiet(self._drain_seconds):
                self._engine.kill()
