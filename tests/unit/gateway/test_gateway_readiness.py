"""Golden answers before anybody may rely on an engine; a watchdog while it lives."""

from __future__ import annotations

import asyncio
import time
from array import array

import pytest
from tests.fakes.engine import vector_of
from tests.unit.gateway.engines import ScriptedEngine

from sampan.gateway.batching import Batching
from sampan.gateway.engine import EngineBrokenError, EngineState
from sampan.gateway.meter import Meter
from sampan.gateway.readiness import golden_results
from sampan.gateway.settings import Limits, ServedModel, Watch
from sampan.gateway.vectors import from_floats
from sampan.gateway.watchdog import Watchdog
from sampan.spec.weights import GoldenEmbedding, GoldenSet

MODEL = ServedModel("m", "embedding", 8)
GOLDEN = GoldenSet("m", "r", 0.99, embeddings=tuple(GoldenEmbedding(t, tuple(vector_of(t))) for t in ("a", "b", "c")))


async def test_golden_texts_are_asked_together_and_alone() -> None:
    engine = ScriptedEngine()
    results = await golden_results(engine, GOLDEN)
    assert [result.ok for result in results] == [True] * 3
    assert engine.passes == [["a", "b", "c"], ["a"], ["b"]]


async def test_an_engine_that_mixes_texts_up_fails() -> None:
    engine = ScriptedEngine()
    engine.vectors = {"a": engine.vector("b"), "b": engine.vector("a")}
    results = await golden_results(engine, GOLDEN)
    assert [result.ok for result in results] == [False, False, True]


async def test_an_engine_that_answers_differently_alone_fails() -> None:
    engine = ScriptedEngine()
    whole = engine.embed

    async def wrong_alone(inputs: list[str], *more: object) -> object:
        engine.vectors = {"a": from_floats(array("f", vector_of("z")))} if len(inputs) == 1 else {}
        return await whole(inputs)

    engine.embed = wrong_alone  # type: ignore[assignment, method-assign]
    assert [result.ok for result in await golden_results(engine, GOLDEN)] == [False, True, True]


async def test_a_fault_is_a_failed_self_test_and_no_crash() -> None:
    engine = ScriptedEngine()
    engine.faults["b"] = [EngineBrokenError("decode failed")]
    (result,) = await golden_results(engine, GOLDEN)
    assert not result.ok
    assert "decode failed" in result.text


class Patient:
    """An engine process as the watchdog sees it."""

    def __init__(self) -> None:
        self.answering = True
        self.kills = 0
        self.pid: int | None = None

    async def answers(self) -> bool:
        return self.answering

    def kill(self) -> None:
        self.kills += 1


@pytest.mark.parametrize(
    ("answering", "hung", "state", "killed"),
    [
        (True, 60.0, EngineState.READY, False),
        (True, 0.05, EngineState.READY, True),  # a pass without end
        (False, 60.0, EngineState.READY, True),  # no answer to probes
        (False, 60.0, EngineState.LOADING, False),
    ],
)
async def test_a_lost_engine_is_killed_and_a_slow_start_is_not(
    answering: bool, hung: float, state: EngineState, killed: bool
) -> None:
    engine = ScriptedEngine()
    batching = Batching(engine, MODEL, Limits(), Meter(), slots=2, pass_tokens=64)
    await batching.embed(["first"])  # before it nothing is known of its speed
    engine.gate.clear()
    asking = asyncio.ensure_future(batching.embed(["a"]))
    await asyncio.sleep(0)
    engine.state = state
    patient = Patient()
    patient.answering = answering
    watch = Watchdog(patient, batching, Watch(hung_seconds=hung), drain_seconds=1, every=0.02)
    running = asyncio.ensure_future(watch.run())
    until = time.monotonic() + (20.0 if killed else 0.3)
    while not patient.kills and time.monotonic() < until:
        await asyncio.sleep(0.01)
    running.cancel()
    asking.cancel()
    assert (patient.kills > 0) is killed
