"""A planned service accepts an input of exactly the promised length and refuses one token more, with the count."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.models import MINILM, SMOLLM2
from tests.fakes.planned_engine import PlannedEngine

from sampan.errors import SampanError
from sampan.gateway.app import create_app
from sampan.gateway.engine import InputTooLongError
from sampan.gateway.settings import ServedModel, longest_input
from sampan.plan.options import PlanOptions
from sampan.plan.planner import make_plan
from sampan.plan.settings import is_split
from sampan.spec.plan import Plan
from sampan.spec.weights import WeightsInfo
from sampan.survey import known

KUNPENG = known.load("kylin-v10-sp3-kunpeng920")
MODELS = {
    "encoder": MINILM,
    "decoder, last": replace(MINILM, architecture="qwen3", pooling="last"),
    "decoder, mean": replace(MINILM, architecture="qwen3", pooling="mean"),
    "chat": SMOLLM2,
}


@st.composite
def planned(draw: st.DrawFn) -> tuple[Plan, WeightsInfo]:
    weights = replace(MODELS[draw(st.sampled_from(sorted(MODELS)))], context_length=draw(st.integers(16, 4096)))
    options = PlanOptions(
        memory_bytes=draw(st.none() | st.integers(300 << 20, 4 << 30)),
        concurrency=draw(st.none() | st.integers(1, 16)),
        max_tokens=draw(st.none() | st.integers(4, weights.context_length)),
        kv_type=draw(st.sampled_from([None, "f16", "q8_0"])),
    )
    try:
        return make_plan(weights, KUNPENG, options), weights
    except SampanError:
        return make_plan(weights, KUNPENG), weights


def _engine(plan: Plan, weights: WeightsInfo) -> PlannedEngine:
    splits = is_split(weights)
    return PlannedEngine(plan.settings, trained=weights.context_length, splits=splits)


@given(planned())
def test_the_engine_takes_the_promised_length_and_not_one_token_more(made: tuple[Plan, WeightsInfo]) -> None:
    plan, weights = made
    engine = _engine(plan, weights)
    longest = plan.settings.longest
    assert longest >= 1
    engine.take(longest)
    with pytest.raises(InputTooLongError):
        engine.take(longest + 1)


async def _ask(plan: Plan, weights: WeightsInfo, words: int, form: str) -> httpx.Response:
    model = ServedModel(plan.model, plan.task, 1, tokens=longest_input(plan.settings))
    app = create_app(_engine(plan, weights), model, slots=plan.settings.slots, pass_tokens=plan.settings.ubatch)
    text: object = "a " * words if form == "text" else [7] * (words + 2)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://s") as client:
        return await client.post("/v1/embeddings", json={"input": ["short", text]})


@settings(max_examples=15)
@given(planned(), st.sampled_from(["text", "tokens"]))
def test_the_api_answers_at_the_promised_length_and_says_the_count_above_it(
    made: tuple[Plan, WeightsInfo], form: str
) -> None:
    plan, weights = made
    if plan.task == "chat" or plan.settings.longest < 3:
        return
    longest = plan.settings.longest
    assert longest_input(plan.settings) == longest
    assert asyncio.run(_ask(plan, weights, longest - 2, form)).status_code == 200
    refused = asyncio.run(_ask(plan, weights, longest - 1, form))
    assert refused.status_code == 400
    assert str(longest + 1) in refused.text
    assert str(longest) in refused.text
