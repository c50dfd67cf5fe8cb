"""An Engine around an Engine: texts of all requests share passes, one pass at a time.

With nothing to do a text goes to the engine at once; under load the next pass gathers while one runs, so no time is
ever spent waiting for company. What a pass may hold is bounded by tokens and by the engine's slots.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic

from sampan.gateway.engine import (
    ANY,
    Ask,
    Embedded,
    Engine,
    EngineStatus,
    Generation,
    Ranked,
    TextOrTokens,
)
from sampan.gateway.lanes import Item, Job
from sampan.gateway.meter import Meter
from sampan.gateway.passes import POLL_SECONDS, Passes
from sampan.gateway.settings import Limits, ServedModel
from sampan.gateway.turns import Taken, Turns


class Batching:
    """See engine.Engine. ``slots`` texts and ``pass_tokens`` tokens go into one pass."""

    def __init__(
        self,
        engine: Engine,
        model: ServedModel,
        limits: Limits,
        meter: Meter,
        *,
        slots: int,
        pass_tokens: int,
        measured: Callable[[int, float], None] = lambda _tokens, _seconds: None,
    ) -> None:
        self._engine = engine
        self._meter = meter
        self._slots = slots
        self._passes = Passes(engine, model, limits, meter, slots=slots, pass_tokens=pass_tokens, measured=measured)
        self.lanes = self._passes.lanes
        self.cache = self._passes.cache
        self.turns = Turns(slots, limits.ageing_seconds)

    @property
    def status(self) -> EngineStatus:
        """See Engine."""
        return self._engine.status

    @property
    def pid(self) -> int | None:
        """The engine's process, where it has one."""
        found = getattr(self._engine, "pid", None)
        return found if isinstance(found, int) else None

    @property
    def pass_seconds(self) -> float:
        """How long the present pass runs already; 0 where none does."""
        return self._passes.seconds

    @property
    def longest_pass_seconds(self) -> float:
        """Of all passes so far; 0 before the first."""
        return self._passes.longest_seconds

    @asynccontextmanager
    async def quiet(self, seconds: float) -> AsyncIterator[None]:
        """Nothing is in the engine while the block runs, if it can be had within ``seconds``."""
        self._passes.quiet = True
        until = monotonic() + seconds
        try:
            async with self.turns.none_taken(seconds):
                while self._passes.running and monotonic() < until:
                    await asyncio.sleep(POLL_SECONDS)
                yield
        finally:
            self._passes.quiet = False
            self._passes.next()

    async def start(self) -> None:
        """See Engine."""
        await self._engine.start()

    async def wait_ready(self, seconds: float) -> None:
        """See Engine."""
        await self._engine.wait_ready(seconds)
        self._passes.was_ready = True

    async def stop(self) -> None:
        """See Engine."""
        self._passes.stop()
        await self._engine.stop()

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """See Engine."""
        return await self._engine.count(texts)

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """See Engine."""
        return await self._engine.tokenize(text, special=special)

    async def takes_tools(self) -> bool:
        """See Engine."""
        return await self._engine.takes_tools()

    async def rerank(self, query: str, documents: Sequence[str], ask: Ask = ANY, /) -> Ranked:
        """See Engine. In parts of one pass each, so that others come between."""
        scores: list[float] = []
        tokens = 0
        for start in range(0, len(documents), self._slots):
            await self.turns.take(ask)
            try:
                part = await self._engine.rerank(query, documents[start : start + self._slots], ask)
            finally:
                self.turns.give()
            scores += part.scores
            tokens += part.tokens
        return Ranked(tuple(scores), tokens)

    async def generate(self, path: str, body: bytes, ask: Ask = ANY, /) -> Generation:
        """See Engine."""
        began = monotonic()
        await self.turns.take(ask)
        self._meter.queue_seconds.observe(monotonic() - began)
        try:
            return Taken(await self._engine.generate(path, body, ask), self.turns)
        except BaseException:
            self.turns.give()
            raise

    async def embed(self, inputs: Sequence[TextOrTokens], ask: Ask = ANY, /) -> Embedded:
        """See Engine."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        job = Job(len(inputs), ask, monotonic(), lambda error: _settle(future, error))
        fresh = self._sort_out(inputs, job)
        try:
            if fresh and self._passes.goes_at_once(fresh):
                await self._passes.run_now(fresh)
            elif fresh:
                self.lanes.add(job, fresh)
                self._passes.next()
            await future
        except asyncio.CancelledError:
            future.cancel()
            self._passes.forget(job)
            raise
        return Embedded(tuple(job.vectors), job.tokens)

    def _sort_out(self, inputs: Sequence[TextOrTokens], job: Job) -> list[Item]:
        """What is in the cache is given, what is being computed is waited for; the rest is new."""
        fresh: list[Item] = []
        for place, text in enumerate(inputs):
            found = self.cache.get(text) if self.cache.limit else None
            if found is not None:
                job.give(place, *found)
                continue
            item = self._passes.known.get(text)
            if item is None:
                item = self._passes.known[text] = Item(text)
                fresh.append(item)
            else:
                self._meter.shared += 1
            job.wait_for(item, place)
        return fresh


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
