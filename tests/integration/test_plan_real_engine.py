"""Plans held to the real llama-server: lengths, memory, flags."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from tests.fakes import real_engine, shaped_models
from tests.fakes.started_engine import READY_SECONDS, needed

from sampan.gateway.app import create_app
from sampan.gateway.engine_args import engine_argv, flags
from sampan.gateway.llama_server import LlamaCommand, LlamaServer
from sampan.gateway.settings import ServedModel, longest_input
from sampan.plan.options import KV_TYPES, PlanOptions
from sampan.plan.planner import make_plan
from sampan.spec.plan import Plan
from sampan.spec.weights import WeightsInfo
from sampan.survey.machine import survey_this

pytestmark = pytest.mark.integration
BENCH = Path(__file__).parents[2] / "bench" / "plan_memory.py"


def _bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plan_memory", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plan_memory"] = module
    spec.loader.exec_module(module)
    return module


bench = _bench()


@cache
def _real(task: str) -> WeightsInfo:
    path = needed(real_engine.weights(task), f"GGUF of a model for {task}")
    found: WeightsInfo = bench.info_of(path)
    return found


def _body(plan: Plan, tokens: int) -> tuple[str, dict[str, object]]:
    if plan.settings.embedding:
        return "/v1/embeddings", {"input": [[7] * tokens]}
    return "/v1/completions", {"prompt": [7] * tokens, "max_tokens": 1, "temperature": 0}


async def _statuses(plan: Plan, weights: WeightsInfo, *lengths: int) -> list[tuple[int, str]]:
    """Through the gateway; token ids, so that their number is exact."""
    executable = needed(real_engine.best_executable(), "llama-server")
    with tempfile.TemporaryDirectory(prefix="gw") as folder:
        where = Path(folder) / "e.sock"
        command = LlamaCommand(executable, "real", Path(weights.path), where, plan.settings, 1, plan.model)
        server = LlamaServer(command, request_seconds=300)
        await server.start()
        try:
            await server.wait_ready(READY_SECONDS)
            model = ServedModel(plan.model, plan.task, weights.embedding_length, tokens=longest_input(plan.settings))
            app = create_app(server, model, slots=plan.settings.slots, pass_tokens=plan.settings.ubatch)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://s", timeout=300) as client:
                found = []
                for tokens in lengths:
                    route, body = _body(plan, tokens)
                    answer = await client.post(route, json=body)
                    found.append((answer.status_code, answer.text))
            return found
        finally:
            await server.stop()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("embedding", PlanOptions()),
        ("embedding", PlanOptions(max_tokens=77, concurrency=3)),
        ("chat", PlanOptions(max_tokens=100, concurrency=2)),
        ("chat", PlanOptions(max_tokens=300, concurrency=1, kv_type="q8_0")),
    ],
)
async def test_the_promised_length_is_answered_and_one_token_more_refused_with_its_count(
    task: str, options: PlanOptions
) -> None:
    weights = _real(task)
    plan = make_plan(weights, survey_this(), options)
    longest = plan.settings.longest
    (accepted, _), (refused, said) = await _statuses(plan, weights, longest, longest + 1)
    assert (accepted, refused) == (200, 400)
    assert str(longest + 1) in said


@pytest.mark.asyncio
async def test_a_decoder_that_embeds_by_its_last_token_keeps_its_promise_in_parts() -> None:
    """SmolLM2 taken for an embedding model: 700 tokens in passes of 512."""
    weights = replace(_real("chat"), task="embedding", pooling="last")
    plan = make_plan(weights, survey_this(), PlanOptions(max_tokens=700, concurrency=2))
    assert plan.settings.ubatch < plan.settings.longest == 700
    (accepted, _), (refused, said) = await _statuses(plan, weights, 700, 701)
    assert (accepted, refused) == (200, 400)
    assert "701" in said


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("embedding", PlanOptions(max_tokens=512, concurrency=8)),
        ("chat", PlanOptions(max_tokens=513, concurrency=2, load_mode="none")),
        ("small-encoder Q4_0", PlanOptions(max_tokens=1024, load_mode="mmap")),
        ("small-decoder Q4_0", PlanOptions(max_tokens=1024, concurrency=2, kv_type="q8_0")),
    ],
)
def test_memory_is_foretold_within_a_tenth(
    model: str, options: PlanOptions, tmp_path_factory: pytest.TempPathFactory
) -> None:
    executable = needed(real_engine.best_executable(), "llama-server")
    if " " in model:
        name, kind = model.split()
        path = shaped_models.write(name, kind, tmp_path_factory.getbasetemp() / f"{name}-{kind}.gguf")
    else:
        path = Path(_real(model).path)
    row = bench.measure(path, options, executable)
    assert row.status == 200
    assert abs(row.error) <= bench.LIMIT, row


def test_every_flag_of_every_plan_is_known_to_the_engine() -> None:
    executable = needed(real_engine.best_executable(), "llama-server")
    shown = subprocess.run([executable, "--help"], capture_output=True, text=True, check=True).stdout
    known = {word.rstrip(",") for word in shown.split() if word.startswith("--")}
    weights = _real("chat")
    two_nodes = replace(survey_this(), cpu=replace(survey_this().cpu, numa_nodes=2))
    used = set()
    for task, pooling in (("chat", None), ("embedding", "last"), ("embedding", "mean")):
        for kind in KV_TYPES:
            plan = make_plan(
                replace(weights, task=task, pooling=pooling), two_nodes, PlanOptions(kv_type=kind, max_tokens=300)
            )
            argv = engine_argv(executable, Path("/m"), Path("/s"), plan.settings, threads=1, alias="a")
            used |= set(flags(argv))
    assert used <= known
    assert {"--kv-unified-per-slot", "--cache-type-k", "--numa"} <= used
