"""An Engine around an Engine: texts of all requests share passes, one pass at a time.

With nothing to do a text goes to the engine at once; under load the next pass gathers while one runs, so no time is
ever spent waiting for company. What a pass may hold is bounded by tokens and by the engine's slots.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from sampan.gateway import vectors
from sampan.gateway.engine import (
    ANY,
    Ask,
    BadVectorError,
    DeadlineError,
    Embedded,
    Engine,
    EngineBrokenError,
    EngineFault,
    EngineRefusedError,
    EngineState,
    EngineStatus,
    EngineUnavailableError,
    Generation,
    InputTooLongError,
    Ranked,
    TextOrTokens,
)
from sampan.gateway.lanes import Item, Job, Lanes
from sampan.gateway.meter import Meter
from sampan.gateway.pace import Pacer
from sampan.gateway.settings import Limits, ServedModel
from sampan.gateway.turns import Taken, Turns
from sampan.gateway.vector_cache import VectorCache

_POLL_SECONDS = 0.02  # while the engine is being started again
_OF_ONE_TEXT = (EngineBrokenError, EngineRefusedError, InputTooLongError, BadVectorError)
_COMES_BACK = frozenset({EngineState.RESTARTING, EngineState.READY, EngineState.LOADING, EngineState.STARTING})


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
        self._model = model
        self._limits = limits
        self._meter = meter
        self._slots = slots
        self._pass_tokens = pass_tokens
        self._measured = measured  # hears of tokens and seconds of each pass
        self._running = False
        self._began = 0.0
        self._quiet = False
        self._task: asyncio.Task[None] | None = None
        self._inside: list[Item] = []  # of a pass that is a task of its own
        self._alone: list[Item] = []  # of a pass that failed: each is tried by itself
        self._known: dict[TextOrTokens, Item] = {}  # queued or running
        self._waker: asyncio.TimerHandle | None = None
        self._was_ready = False
        self._stumbled = False  # nobody listened, though the engine is not yet known to be gone
        self._pacer = Pacer(slots)
        self.lanes = Lanes(limits.ageing_seconds)
        self.turns = Turns(slots, limits.ageing_seconds)
        self.cache = VectorCache(limits.cache_bytes)

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
        return self._now() - self._began if self._running else 0.0

    @asynccontextmanager
    async def quiet(self, seconds: float) -> AsyncIterator[None]:
        """Nothing is in the engine while the block runs, if it can be had within ``seconds``."""
        self._quiet = True
        until = self._now() + seconds
        try:
            async with self.turns.none_taken(seconds):
                while self._running and self._now() < until:
                    await asyncio.sleep(_POLL_SECONDS)
                yield
        finally:
            self._quiet = False
            self._next()

    async def start(self) -> None:
        """See Engine."""
        await self._engine.start()

    async def wait_ready(self, seconds: float) -> None:
        """See Engine."""
        await self._engine.wait_ready(seconds)
        self._was_ready = True

    async def stop(self) -> None:
        """See Engine."""
        if self._waker is not None:
            self._waker.cancel()
        if self._task is not None:
            self._task.cancel()
        await self._engine.stop()

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """See Engine."""
        return await self._engine.count(texts)

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """See Engine."""
        return await self._engine.tokenize(text, special=special)

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
        began = self._now()
        await self.turns.take(ask)
        self._meter.queue_seconds.observe(self._now() - began)
        try:
            return Taken(await self._engine.generate(path, body, ask), self.turns)
        except BaseException:
            self.turns.give()
            raise

    async def embed(self, inputs: Sequence[TextOrTokens], ask: Ask = ANY, /) -> Embedded:
        """See Engine."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        job = Job(len(inputs), ask, self._now(), lambda error: _settle(future, error))
        fresh = self._sort_out(inputs, job)
        try:
            if fresh and not self._running and not self.lanes.texts and self._goes_at_once(fresh):
                await self._pass_of_caller(fresh)
            elif fresh:
                self.lanes.add(job, fresh)
                self._next()
            await future
        except asyncio.CancelledError:
            future.cancel()
            self._forget(job)
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
            item = self._known.get(text)
            if item is None:
                item = self._known[text] = Item(text)
                fresh.append(item)
            else:
                self._meter.shared += 1
            job.wait_for(item, place)
        return fresh

    def _goes_at_once(self, items: Sequence[Item]) -> bool:
        if self._quiet or self._engine.status.state is not EngineState.READY:
            return False
        return len(items) <= self._slots and sum(item.tokens for item in items) <= self._pass_tokens

    def _forget(self, job: Job) -> None:
        """The client left: what nobody else waits for is not computed."""
        self.lanes.leave(job)
        for item in job.items:
            item.waiting = [pair for pair in item.waiting if pair[0] is not job]
            if not item.waiting and self._known.get(item.text) is item:
                del self._known[item.text]
        if self._task is not None and self._inside and not any(item.waiting for item in self._inside):
            self._task.cancel()  # nobody is left whom the running pass could serve

    def _next(self) -> None:
        """Start the next pass, where there is one and the engine is free."""
        if self._running or self._quiet or not (self.lanes.texts or self._alone):
            return
        if self._stumbled or self._engine.status.state is not EngineState.READY:
            self._stumbled = False
            self._wait_for_engine()
            return
        self._drop_late()
        now = self._now()
        items = self._alone[:1] or self.lanes.take(now, self._slots, self._pass_tokens, self._pacer.bulk_texts(now))
        del self._alone[:1]
        items = [item for item in items if item.waiting]
        if items:
            self._running, self._began = True, now
            self._inside = items
            self._task = asyncio.ensure_future(self._pass(items))
            self._task.add_done_callback(self._after_pass)
        elif self.lanes.texts or self._alone:
            self._next()

    def _drop_late(self) -> None:
        limit = self._now() + self._pacer.pass_seconds
        for job in self.lanes.jobs():
            if job.ask.deadline is not None and job.ask.deadline < limit:
                self._fail(job, DeadlineError())

    def _wait_for_engine(self) -> None:
        """An engine that is being started again is waited for; one that is not coming back is not."""
        state, limit = self._engine.status.state, self._now() - self._limits.restart_seconds
        hopeless = state not in _COMES_BACK or not self._was_ready
        for job in self.lanes.jobs():
            if hopeless or job.entered < limit:
                self._fail(job, EngineUnavailableError(state))
        self._drop_late()
        if self._waker is None and (self.lanes.texts or self._alone):
            self._waker = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._wake)

    def _wake(self) -> None:
        self._waker = None
        self._next()

    def _fail(self, job: Job, error: EngineFault) -> None:
        self._forget(job)
        job.done(error)

    async def _pass_of_caller(self, items: list[Item]) -> None:
        """In the task of who asks: a task more would cost a short text a tenth of its time here."""
        self._running, self._began = True, self._now()
        try:
            await self._pass(items)
        finally:
            self._after_pass()

    async def _pass(self, items: list[Item]) -> None:
        """Have the engine compute these. Errors go to the requests that wait, never to the caller."""
        began = self._began = self._now()
        self._observe(items, began)
        try:
            found, counts = await self._compute(items)
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
        self._was_ready = True
        self._running = False
        self._inside, self._task = [], None
        self._next()

    def _has_others(self, item: Item) -> bool:
        """A pass that its own caller ran is cancelled with it; whoever else waits must not suffer."""
        return len({id(job) for job, _ in item.waiting}) > 1

    async def _compute(self, items: Sequence[Item]) -> tuple[Embedded, Sequence[int]]:
        """Vectors, and the tokens of each text. The engine tells only their sum: enough where one request has all."""
        texts = [item.text for item in items]
        if self._is_of_one_request(items):
            found = await self._engine.embed(texts)
            if self._is_of_one_request(items):  # still
                return found, (found.tokens, *([0] * (len(texts) - 1)))
            return found, await self._count(texts)
        found, counts = await asyncio.gather(self._engine.embed(texts), self._count(texts))
        return found, counts

    def _is_of_one_request(self, items: Sequence[Item]) -> bool:
        if len(items) == 1:
            return True
        if self.cache.limit or any(len(item.waiting) != 1 for item in items):
            return False
        return len({id(item.waiting[0][0]) for item in items}) == 1

    async def _count(self, texts: Sequence[TextOrTokens]) -> list[int]:
        words = [text for text in texts if isinstance(text, str)]
        numbers = iter(await self._engine.count(words) if words else ())
        return [next(numbers) if isinstance(text, str) else len(text) for text in texts]

    def _observe(self, items: Sequence[Item], now: float) -> None:
        meter = self._meter
        for item in items:
            if item.waiting:
                meter.queue_seconds.observe(now - item.waiting[0][0].entered)
        meter.pass_texts.observe(len(items))
        meter.pass_fill.observe(sum(item.tokens for item in items) / self._pass_tokens)

    def _hand_out(self, items: Sequence[Item], found: Embedded, counts: Sequence[int]) -> None:
        for item, vector, tokens in zip(items, found.vectors, counts, strict=True):
            try:
                vectors.check(vector, dimensions=self._model.dimensions, normalized=self._model.normalized)
            except BadVectorError as fault:
                self._blame([item], fault, alone=len(items) == 1)
                continue
            self._known.pop(item.text, None)
            if self.cache.limit:
                self.cache.put(item.text, vector, tokens)
            for job, place in item.waiting:
                job.give(place, vector, tokens)

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
        return asyncio.get_running_loop().time()


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
