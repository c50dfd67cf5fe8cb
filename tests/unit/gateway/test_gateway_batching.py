"""Texts of many requests in shared passes: who waits, who shares, who suffers."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.gateway.engines import ScriptedEngine

from sampan.gateway.batching import Batching
from sampan.gateway.engine import (
    ANY,
    Ask,
    BadVectorError,
    DeadlineError,
    Embedded,
    EngineBrokenError,
    EngineState,
    EngineUnavailableError,
    Lane,
    TextOrTokens,
)
from sampan.gateway.gathering import GATHER_SECONDS
from sampan.gateway.meter import Meter
from sampan.gateway.settings import Limits, ServedModel

MODEL = ServedModel("m", "embedding", 8)
BULK = Ask(Lane.BULK)
NAN = struct.pack("<8f", *[math.nan] * 8)


@pytest.fixture
async def engine() -> ScriptedEngine:
    return ScriptedEngine()


def batching(engine: ScriptedEngine, *, slots: int = 4, tokens: int = 100, **limits: float) -> Batching:
    return Batching(engine, MODEL, Limits(**limits), Meter(), slots=slots, pass_tokens=tokens)  # type: ignore[arg-type]


async def until(true: Callable[[], bool]) -> None:
    for _ in range(200):
        if true():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("never")


async def held(engine: ScriptedEngine, over: Batching) -> asyncio.Task[object]:
    """A first request is in the engine and stays there."""
    engine.gate.clear()
    task: asyncio.Task[object] = asyncio.ensure_future(over.embed(["first"]))
    await until(lambda: bool(engine.passes))
    return task


async def test_an_idle_engine_gets_a_text_at_once_and_is_not_asked_to_count(engine: ScriptedEngine) -> None:
    over = batching(engine)
    found = await over.embed(["a b", "c"])
    assert engine.passes == [["a b", "c"]]
    assert found.vectors == (engine.vector("a b"), engine.vector("c"))
    assert found.tokens == 7
    assert engine.counted == []


async def test_what_comes_meanwhile_shares_the_next_pass_and_each_gets_its_own(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    others = [asyncio.ensure_future(over.embed([f"text {number}"])) for number in range(3)]
    await asyncio.sleep(0)
    engine.gate.set()
    found = await asyncio.gather(*others)
    await first
    assert [sorted(map(str, each)) for each in engine.passes] == [["first"], ["text 0", "text 1", "text 2"]]
    assert [each.vectors for each in found] == [(engine.vector(f"text {number}"),) for number in range(3)]
    assert [each.tokens for each in found] == [4, 4, 4]


class Noting(ScriptedEngine):
    """Notes how many requests were answered when each pass began."""

    def __init__(self, answered: list[str]) -> None:
        super().__init__()
        self._answered = answered
        self.answered_before: list[int] = []

    async def embed(self, inputs: Sequence[TextOrTokens], ask: Ask = ANY, /) -> Embedded:
        self.answered_before.append(len(self._answered))
        return await super().embed(inputs, ask)


async def test_the_engine_does_not_wait_for_answers_to_be_written_where_a_full_pass_waits() -> None:
    answered: list[str] = []
    engine = Noting(answered)
    over = batching(engine)
    first = await held(engine, over)

    async def client(text: str) -> None:
        await over.embed([text])
        answered.append(text)

    clients = [asyncio.ensure_future(client(f"text {number}")) for number in range(12)]
    await asyncio.sleep(0)
    engine.gate.set()
    await asyncio.gather(first, *clients)
    assert [len(each) for each in engine.passes] == [1, 4, 4, 4]
    assert engine.answered_before == [0, 0, 0, 4]  # each time the four of the pass before are still to be written


async def test_who_was_answered_together_goes_together_again(engine: ScriptedEngine) -> None:
    """Clients that ask in turn: the first to come back must not go alone."""
    over = batching(engine)
    first = await held(engine, over)

    async def client(name: str) -> None:
        for number in range(3):
            await over.embed([f"{name} {number}"])
            for _ in range(ord(name) - ord("a")):  # they come back one after another
                await asyncio.sleep(0)

    clients = [asyncio.ensure_future(client(name)) for name in "abc"]
    await asyncio.sleep(0)
    engine.gate.set()
    await asyncio.gather(first, *clients)
    assert [len(each) for each in engine.passes] == [1, 3, 3, 3]


async def test_a_lone_client_never_waits_for_others(engine: ScriptedEngine) -> None:
    over = batching(engine)
    await over.embed(["a", "b", "c"])
    began = asyncio.get_running_loop().time()
    for number in range(20):
        await over.embed([f"text {number}"])
    assert asyncio.get_running_loop().time() - began < 20 * GATHER_SECONDS


async def test_a_large_request_is_cut_and_others_come_between(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    large = asyncio.ensure_future(over.embed([f"large {number}" for number in range(9)]))
    await asyncio.sleep(0)
    small = asyncio.ensure_future(over.embed(["small"]))
    await asyncio.sleep(0)
    engine.gate.set()
    await asyncio.gather(first, large, small)
    assert max(map(len, engine.passes)) == 4
    assert "small" in engine.passes[1], "it waited for one pass only"
    assert list((await large).vectors) == [engine.vector(f"large {number}") for number in range(9)]


async def test_a_pass_has_its_bound_of_tokens_but_one_long_text_still_goes(engine: ScriptedEngine) -> None:
    over = batching(engine, tokens=12)
    first = await held(engine, over)
    rest = asyncio.ensure_future(over.embed(["x" * 200, "aaaa", "bbbb", "cccc", "dddd"]))
    await asyncio.sleep(0)
    engine.gate.set()
    await asyncio.gather(first, rest)
    assert [len(each) for each in engine.passes[1:]] == [4, 1]


async def test_people_go_before_jobs_but_an_old_job_is_not_forgotten(engine: ScriptedEngine) -> None:
    for ageing, last in ((60.0, "job"), (0.0, "person")):
        engine.passes.clear()
        over = batching(engine, ageing_seconds=ageing)
        first = await held(engine, over)
        job = asyncio.ensure_future(over.embed(["job"], BULK))
        await asyncio.sleep(0)
        people = [asyncio.ensure_future(over.embed([f"person {number}"])) for number in range(8)]
        await asyncio.sleep(0)
        engine.gate.set()
        await asyncio.gather(first, job, *people)
        assert str(engine.passes[-1][-1]).startswith(last)


async def test_equal_texts_in_flight_are_computed_once(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    same = [asyncio.ensure_future(over.embed(["first", "other"])) for _ in range(2)]
    await asyncio.sleep(0)
    engine.gate.set()
    found = await asyncio.gather(*same)
    await first
    assert engine.passes == [["first"], ["other"]]
    assert {each.vectors for each in found} == {(engine.vector("first"), engine.vector("other"))}
    assert {each.tokens for each in found} == {6}


async def test_the_cache_answers_exact_texts_and_keeps_its_bound(engine: ScriptedEngine) -> None:
    over = batching(engine, cache_bytes=2000)
    await over.embed(["a"])
    again = await over.embed(["a"])
    assert engine.passes == [["a"]]
    assert (again.vectors, again.tokens) == ((engine.vector("a"),), 3)
    for number in range(20):
        await over.embed([f"text {number}"])
    assert 0 < over.cache.bytes <= 2000
    await over.embed(["a"])
    assert engine.passes[-1] == ["a"], "it was dropped as the oldest"
    assert (over.cache.hits, len(over.cache) < 8) == (1, True)


async def test_a_text_that_fails_is_tried_alone_and_fails_alone(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    bad = asyncio.ensure_future(over.embed(["good 1", "bad"]))
    good = asyncio.ensure_future(over.embed(["good 2"]))
    await asyncio.sleep(0)
    engine.faults["bad"] = [EngineBrokenError("decode failed")] * 2
    engine.gate.set()
    assert (await good).vectors == (engine.vector("good 2"),)
    with pytest.raises(EngineBrokenError):
        await bad
    await first


async def test_a_vector_that_is_none_is_asked_for_once_more_alone(engine: ScriptedEngine) -> None:
    over = batching(engine)
    engine.vectors["bad"] = NAN
    with pytest.raises(BadVectorError) as caught:
        await over.embed(["good", "bad", "fine"])
    assert caught.value.index == 1
    assert engine.passes == [["good", "bad", "fine"], ["bad"]]
    engine.vectors.clear()
    assert (await over.embed(["bad"])).vectors == (engine.vector("bad"),)


async def test_a_client_that_leaves_ends_its_own_work_and_no_other(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    shared = asyncio.ensure_future(over.embed(["first", "second"]))
    leaver = asyncio.ensure_future(over.embed(["third"]))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.sleep(0)
    first.cancel()
    engine.gate.set()
    assert (await shared).vectors == (engine.vector("first"), engine.vector("second"))
    assert not any("third" in each for each in engine.passes)
    assert (over.lanes.texts, over.lanes.tokens) == (0, 0)


async def test_a_client_that_leaves_alone_frees_the_engine(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert engine.cancelled == 1
    engine.gate.set()
    await over.embed(["next"])
    assert engine.passes == [["first"], ["next"]]


async def test_a_pass_that_nobody_waits_for_any_more_is_ended(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    others = [asyncio.ensure_future(over.embed([f"text {number}"])) for number in range(2)]
    await asyncio.sleep(0)
    engine.gate.set()
    engine.gate.clear()  # only what is inside goes on
    await first
    await until(lambda: len(engine.passes) == 2)
    others[0].cancel()
    await asyncio.sleep(0)
    assert engine.cancelled == 0
    others[1].cancel()
    await until(lambda: engine.cancelled == 1)
    engine.gate.set()
    await over.embed(["next"])


async def test_a_crash_fails_what_was_inside_and_the_rest_waits(engine: ScriptedEngine) -> None:
    over = batching(engine)
    await over.wait_ready(1)
    first = await held(engine, over)
    waiting = asyncio.ensure_future(over.embed(["waiting"]))
    await asyncio.sleep(0)
    engine.faults["first"] = [EngineUnavailableError(EngineState.RESTARTING)]
    engine.state = EngineState.RESTARTING
    engine.gate.set()
    with pytest.raises(EngineUnavailableError):
        await first
    newcomer = asyncio.ensure_future(over.embed(["newcomer"]))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    engine.state = EngineState.READY
    assert (await waiting).tokens == (await newcomer).tokens == 3


async def test_what_nobody_listened_to_is_sent_again(engine: ScriptedEngine) -> None:
    over = batching(engine)
    engine.faults["a"] = [EngineUnavailableError(EngineState.RESTARTING, reached=False)]
    assert (await over.embed(["a"])).tokens == 3
    assert engine.passes == [["a"], ["a"]]


async def test_an_engine_that_does_not_come_back_is_said(engine: ScriptedEngine) -> None:
    over = batching(engine, restart_seconds=0.05)
    await over.wait_ready(1)
    for state in (EngineState.RESTARTING, EngineState.FAILED):
        engine.state = state
        with pytest.raises(EngineUnavailableError):
            await over.embed(["a"])
    assert engine.passes == []


async def test_work_that_can_no_longer_be_in_time_never_reaches_the_engine(engine: ScriptedEngine) -> None:
    over = batching(engine)
    first = await held(engine, over)
    late = asyncio.ensure_future(over.embed(["late"], Ask(deadline=asyncio.get_running_loop().time() + 0.01)))
    await asyncio.sleep(0.03)
    engine.gate.set()
    with pytest.raises(DeadlineError):
        await late
    await first
    assert engine.passes == [["first"]]


async def test_a_quiet_engine_is_left_alone_and_nothing_is_lost(engine: ScriptedEngine) -> None:
    over = batching(engine)
    async with over.quiet(1):
        waiting = asyncio.ensure_future(over.embed(["waiting"]))
        await asyncio.sleep(0.02)
        assert engine.passes == []
    assert (await waiting).tokens == 3


TEXTS = st.lists(st.sampled_from(["a", "b b", "c c c", "d d d d d d", "bad"]), min_size=1, max_size=9)


@settings(max_examples=25, deadline=None)
@given(requests=st.lists(st.tuples(TEXTS, st.booleans(), st.booleans()), min_size=1, max_size=6))
def test_whatever_comes_together_each_gets_its_own_vectors(requests: list[tuple[list[str], bool, bool]]) -> None:
    async def run() -> None:
        engine = ScriptedEngine()
        engine.faults["bad"] = [EngineBrokenError("x")] * 1000
        over = batching(engine, slots=3, tokens=9)
        tasks = []
        for texts, is_bulk, leaves in requests:
            task = asyncio.ensure_future(over.embed(texts, BULK if is_bulk else Ask()))
            await asyncio.sleep(0)
            if leaves:
                task.cancel()
            tasks.append(task)
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        for (texts, _, leaves), result in zip(requests, results, strict=True):
            if isinstance(result, BaseException):
                assert leaves or "bad" in texts
            else:
                assert result.vectors == tuple(map(engine.vector, texts))
                assert result.tokens == sum(map(engine.tokens, texts))
        await until(lambda: over.pass_seconds == 0)
        assert (over.lanes.texts, over.lanes.tokens) == (0, 0)
        assert over._passes.known == {}, "nothing is left behind"

    asyncio.run(run())
