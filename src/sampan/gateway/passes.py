"""Passes through the engine, one at a time: what goes into the next one, and what becomes of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic  # the loop's clock, but uvloop's has whole milliseconds only

from sampan.gateway.computing import compute
from sampan.gateway.engine import (
    DeadlineError,
    Engine,
    EngineFault,
    EngineState,
    EngineUnavailableError,
    TextOrTokens,
)
from sampan.gateway.gathering import Gathering
from sampan.gateway.lanes import Item, Job, Lanes
from sampan.gateway.meter import Meter
from sampan.gateway.outcomes import Outcomes
from sampan.gateway.pace import Pacer
from sampan.gateway.settings import Limits, ServedModel
from sampan.gateway.vector_cache import VectorCache

POLL_SECONDS = 0.02  # while the engine is being started again
_COMES_BACK = frozenset({EngineState.RESTARTING, EngineState.READY, EngineState.LOADING, EngineState.STARTING})


class Passes:
    """Of one engine. ``slots`` texts and ``pass_tokens`` tokens go into one; ``quiet`` holds the next one back.

    ``known`` are the texts that wait or are inside; ``measured`` hears of the tokens and seconds of each pass.
    """

    def __init__(
        self,
        engine: Engine,
        model: ServedModel,
        limits: Limits,
        meter: Meter,
        *,
        slots: int,
        pass_tokens: int,
        measured: Callable[[int, float], None],
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._meter = meter
        self._slots = slots
        self._pass_tokens = pass_tokens
        self._measured = measured
        self._pacer = Pacer(slots)
        self._began = 0.0
        self._number = 0  # of the present pass, or the last one
        self._task: asyncio.Task[None] | None = None
        self._inside: list[Item] = []  # of a pass that is a task of its own
        self._waker: asyncio.TimerHandle | None = None
        self._gathering = Gathering()
        self._stumbled = False  # nobody listened, though the engine is not yet known to be gone
        self.running = False
        self.quiet = False
        self.was_ready = False
        self.known: dict[TextOrTokens, Item] = {}
        self.lanes = Lanes(limits.ageing_seconds)
        self.cache = VectorCache(limits.cache_bytes)
        self._outcomes = Outcomes(model, meter, self.cache, self.known, self._fail)

    @property
    def seconds(self) -> float:
        """How long the present pass runs already; 0 where none does."""
        return monotonic() - self._began if self.running else 0.0

    @property
    def longest_seconds(self) -> float:
        """Of all passes so far; 0 before the first."""
        return self._pacer.longest_seconds

    def stop(self) -> None:
        """No more passes."""
        if self._waker is not None:
            self._waker.cancel()
        if self._task is not None:
            self._task.cancel()

    def goes_at_once(self, items: Sequence[Item]) -> bool:
        """True where nothing runs or waits, and all of it is one pass."""
        if self.running or self.lanes.texts or self._gathering.is_on(monotonic()):
            return False
        if self.quiet or self._engine.status.state is not EngineState.READY:
            return False
        return len(items) <= self._slots and sum([item.tokens for item in items]) <= self._pass_tokens

    def forget(self, job: Job) -> None:
        """The client left: what nobody else waits for is not computed."""
        self.lanes.leave(job)
        for item in job.items:
            item.waiting = [pair for pair in item.waiting if pair[0] is not job]
            if not item.waiting and self.known.get(item.text) is item:
                del self.known[item.text]
        if self._task is not None and self._inside and not any(item.waiting for item in self._inside):
            self._task.cancel()  # nobody is left whom the running pass could serve

    def next(self) -> None:
        """Start the next pass, where there is one and the engine is free."""
        if self.running or self.quiet or not (self.lanes.texts or self._outcomes.alone):
            return
        if self._stumbled or self._engine.status.state is not EngineState.READY:
            self._stumbled = False
            self._wait_for_engine()
            return
        self._drop_late()
        now, alone = monotonic(), self._outcomes.alone
        if not alone and self._gathering.lacks(self.lanes.texts, self._slots, now):
            self._wake_at(self._gathering.until)
            return
        items = alone[:1] or self.lanes.take(now, self._slots, self._pass_tokens, self._pacer.bulk_texts(now))
        del alone[:1]
        items = [item for item in items if item.waiting]
        if items:
            number = self._begin()
            self._inside = items
            self._task = asyncio.ensure_future(self._pass(items, number))
            self._task.add_done_callback(lambda _: self._end(number))
        elif self.lanes.texts or self._outcomes.alone:
            self.next()

    def _wake_at(self, when: float) -> None:
        if self._waker is None:
            self._waker = asyncio.get_running_loop().call_at(when, self._wake)

    def _drop_late(self) -> None:
        limit = monotonic() + self._pacer.pass_seconds
        for job in self.lanes.jobs():
            if job.ask.deadline is not None and job.ask.deadline < limit:
                self._fail(job, DeadlineError())

    def _wait_for_engine(self) -> None:
        """An engine that is being started again is waited for; one that is not coming back is not."""
        state, limit = self._engine.status.state, monotonic() - self._limits.restart_seconds
        hopeless = state not in _COMES_BACK or not self.was_ready
        for job in self.lanes.jobs():
            if hopeless or job.entered < limit:
                self._fail(job, EngineUnavailableError(state))
        self._drop_late()
        if self.lanes.texts or self._outcomes.alone:
            self._wake_at(monotonic() + POLL_SECONDS)

    def _wake(self) -> None:
        self._waker = None
        self._gathering.end()
        self.next()

    def _fail(self, job: Job, error: EngineFault) -> None:
        self.forget(job)
        job.done(error)

    async def run_now(self, items: list[Item]) -> None:
        """In the task of who asks: a task more would be one turn of the loop more for a short text."""
        number = self._begin()
        try:
            await self._pass(items, number)
        finally:
            self._end(number)

    async def _pass(self, items: list[Item], number: int) -> None:
        """Have the engine compute these. Errors go to the requests that wait, never to the caller."""
        began = self._began = monotonic()
        self._observe(items, began)
        try:
            found, counts = await compute(self._engine, items, exact=bool(self.cache.limit))
        except asyncio.CancelledError:
            self.lanes.put_back([item for item in items if self._has_others(item)])
            raise
        except EngineUnavailableError as fault:
            if fault.reached:
                self._outcomes.fail_all(items, fault)
            else:
                self._stumbled = True
                self.lanes.put_back(items)
        except EngineFault as fault:
            self._outcomes.blame(items, fault)
        else:
            seconds = monotonic() - began
            self._pacer.measured(items, seconds, monotonic())
            self._meter.engine_seconds.observe(seconds)
            self._measured(found.tokens, seconds)
            if (
                self.lanes.texts >= self._slots
            ):  # nothing to gather: the engine need not wait for answers to be written
                self._end(number)
            answered = self._outcomes.hand_out(items, found, counts)
            self._gathering.begin(answered, monotonic())

    def _begin(self) -> int:
        self._number += 1
        self.running, self._began = True, monotonic()
        return self._number

    def _end(self, number: int) -> None:
        """However it ended, even where it was cancelled before it began. The next one may have begun already."""
        if number != self._number:
            return
        self.was_ready = True
        self.running = False
        self._inside, self._task = [], None
        self.next()

    def _has_others(self, item: Item) -> bool:
        """A pass that its own caller ran is cancelled with it; whoever else waits must not suffer."""
        return len({id(job) for job, _ in item.waiting}) > 1

    def _observe(self, items: Sequence[Item], now: float) -> None:
        meter = self._meter
        for item in items:
            if item.waiting:
                meter.queue_seconds.observe(now - item.waiting[0][0].entered)
        meter.pass_texts.observe(len(items))
        meter.pass_fill.observe(sum([item.tokens for item in items]) / self._pass_tokens)
