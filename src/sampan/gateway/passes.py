"""Passes through the engine, one at a time: what goes into the next one, and what becomes of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from sampan.gateway import vectors
from sampan.gateway.computing import compute
from sampan.gateway.engine import (
    BadVectorError,
    DeadlineError,
    Embedded,
    Engine,
    EngineBrokenError,
    EngineFault,
    EngineRefusedError,
    EngineState,
    EngineUnavailableError,
    InputTooLongError,
    TextOrTokens,
)
from sampan.gateway.lanes import Item, Job, Lanes
from sampan.gateway.meter import Meter
from sampan.gateway.pace import Pacer
from sampan.gateway.settings import Limits, ServedModel
from sampan.gateway.vector_cache import VectorCache

GATHER_SECONDS = 0.002  # who was just answered together mostly asks again together
POLL_SECONDS = 0.02  # while the engine is being started again
_OF_ONE_TEXT = (EngineBrokenError, EngineRefusedError, InputTooLongError, BadVectorError)
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
        self._model = model
        self._limits = limits
        self._meter = meter
        self._slots = slots
        self._pass_tokens = pass_tokens
        self._measured = measured
        self._pacer = Pacer(slots)
        self._began = 0.0
        self._task: asyncio.Task[None] | None = None
        self._inside: list[Item] = []  # of a pass that is a task of its own
        self._alone: list[Item] = []  # of a pass that failed: each is tried by itself
        self._waker: asyncio.TimerHandle | None = None
        self._expected = 0  # requests that the last pass answered: so many may come again at once
        self._gather_until = 0.0
        self._stumbled = False  # nobody listened, though the engine is not yet known to be gone
        self.running = False
        self.quiet = False
        self.was_ready = False
        self.known: dict[TextOrTokens, Item] = {}
        self.lanes = Lanes(limits.ageing_seconds)
        self.cache = VectorCache(limits.cache_bytes)

    @property
    def seconds(self) -> float:
        """How long the present pass runs already; 0 where none does."""
        return self._now() - self._began if self.running else 0.0

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
        if self.running or self.lanes.texts or self._gathers():
            return False
        if self.quiet or self._engine.status.state is not EngineState.READY:
            return False
        return len(items) <= self._slots and sum(item.tokens for item in items) <= self._pass_tokens

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
        if self.running or self.quiet or not (self.lanes.texts or self._alone):
            return
        if self._stumbled or self._engine.status.state is not EngineState.READY:
            self._stumbled = False
            self._wait_for_engine()
            return
        self._drop_late()
        if self._gathers() and not self._alone and self.lanes.texts < min(self._slots, self._expected):
            self._wake_at(self._gather_until)
            return
        now = self._now()
        items = self._alone[:1] or self.lanes.take(now, self._slots, self._pass_tokens, self._pacer.bulk_texts(now))
        del self._alone[:1]
        items = [item for item in items if item.waiting]
        if items:
            self.running, self._began = True, now
            self._inside = items
            self._task = asyncio.ensure_future(self._pass(items))
            self._task.add_done_callback(self._after_pass)
        elif self.lanes.texts or self._alone:
            self.next()

    def _gathers(self) -> bool:
        """True just after a pass for several requests. Without this, the first to ask again would go alone, and the
        engine would alternate between passes of one text and of all the others.
        """
        return self._expected > 1 and self._now() < self._gather_until

    def _wake_at(self, when: float) -> None:
        if self._waker is None:
            self._waker = asyncio.get_running_loop().call_at(when, self._wake)

    def _drop_late(self) -> None:
        limit = self._now() + self._pacer.pass_seconds
        for job in self.lanes.jobs():
            if job.ask.deadline is not None and job.ask.deadline < limit:
                self._fail(job, DeadlineError())

    def _wait_for_engine(self) -> None:
        """An engine that is being started again is waited for; one that is not coming back is not."""
        state, limit = self._engine.status.state, self._now() - self._limits.restart_seconds
        hopeless = state not in _COMES_BACK or not self.was_ready
        for job in self.lanes.jobs():
            if hopeless or job.entered < limit:
                self._fail(job, EngineUnavailableError(state))
        self._drop_late()
        if self.lanes.texts or self._alone:
            self._wake_at(self._now() + POLL_SECONDS)

    def _wake(self) -> None:
        self._waker = None
        self._gather_until = 0.0
        self.next()

    def _fail(self, job: Job, error: EngineFault) -> None:
        self.forget(job)
        job.done(error)

    async def run_now(self, items: list[Item]) -> None:
        """In the task of who asks: a task more would cost a short text a tenth of its time here."""
        self.running, self._began = True, self._now()
        try:
            await self._pass(items)
        finally:
            self._after_pass()

    async def _pass(self, items: list[Item]) -> None:
        """Have the engine compute these. Errors go to the requests that wait, never to the caller."""
        began = self._began = self._now()
        self._observe(items, began)
        try:
            found, counts = await compute(self._engine, items, exact=bool(self.cache.limit))
        except asyncio.CancelledError:
            self.lanes.put_back([item for item in items if self._has_others(item)])
            raise
        except EngineUnavailableError as fault:
            if fault.reached:
                self._fail_all(items, fault)
            else:
                self._stumbled = True
                self.lanes.put_back(items)
        except EngineFault as fault:
            self._blame(items, fault)
        else:
            seconds = self._now() - began
            self._pacer.measured(items, seconds, self._now())
            self._meter.engine_seconds.observe(seconds)
            self._measured(found.tokens, seconds)
            self._hand_out(items, found, counts)

    def _after_pass(self, _task: object = None) -> None:
        """However it ended, and even where it was cancelled before it began."""
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
        meter.pass_fill.observe(sum(item.tokens for item in items) / self._pass_tokens)

    def _hand_out(self, items: Sequence[Item], found: Embedded, counts: Sequence[int]) -> None:
        answered = 0
        for item, vector, tokens in zip(items, found.vectors, counts, strict=True):
            try:
                vectors.check(vector, dimensions=self._model.dimensions, normalized=self._model.normalized)
            except BadVectorError as fault:
                self._blame([item], fault, alone=len(items) == 1)
                continue
            self.known.pop(item.text, None)
            if self.cache.limit:
                self.cache.put(item.text, vector, tokens)
            for job, place in item.waiting:
                job.give(place, vector, tokens)
                answered += not job.left
        self._expected, self._gather_until = answered, self._now() + GATHER_SECONDS

    def _blame(self, items: list[Item], fault: EngineFault, *, alone: bool | None = None) -> None:
        """Which of several texts failed is not known: each is tried alone. One alone fails."""
        alone = len(items) == 1 if alone is None else alone
        if alone or not isinstance(fault, _OF_ONE_TEXT):
            self._fail_all(items, fault)
            return
        self._meter.retried_alone += len(items)
        self._alone += items

    def _fail_all(self, items: Sequence[Item], fault: EngineFault) -> None:
        for item in items:
            for job, place in list(item.waiting):
                if isinstance(fault, (BadVectorError, InputTooLongError)):
                    fault.index = place
                self._fail(job, fault)

    def _now(self) -> float:
        return time.monotonic()  # the loop's clock, but uvloop's has whole milliseconds only
