"""Asking the real engine on this machine what a file of weights answers, and how fast."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sampan.errors import BadInputError
from sampan.spec.plan import EngineSettings
from sampan.spec.weights import WeightsInfo

if TYPE_CHECKING:
    from sampan.gateway.llama_server import LlamaServer
    from sampan.spec.ports import Progress
    from sampan.weights.gate.measures import Vectors

Question = tuple[str, dict[str, object]]  # path, body
_PASS = 512  # tokens of the longest text that is measured
_BATCH = 32  # texts a request
_READY_SECONDS = 600.0
_TOKENS = 48
_PROMPT = "Once upon a time, in a small village by the sea, there lived"


@dataclass(frozen=True)
class Answered:
    """``vectors``: texts × dimensions; ``speed``: texts a second, without the first batch."""

    vectors: Vectors
    speed: float


def threads() -> int:
    """How many threads a measurement uses: the CPUs that we may run on."""
    return len(os.sched_getaffinity(0))


def embed(
    executable: Path, info: WeightsInfo, texts: Sequence[str], progress: Progress, *, pooling: str | None = None
) -> Answered:
    """Every text's vector, by the file's own pooling or another. Raises BadInputError, ServiceError."""
    return asyncio.run(_embed(executable, info, texts, progress, pooling))


def ask(executable: Path, info: WeightsInfo, questions: Sequence[Question]) -> list[dict[str, Any]]:
    """What the engine answers to each path and body. Raises ServiceError, EngineFault."""
    return asyncio.run(_ask(executable, info, questions))


def generation_speed(executable: Path, info: WeightsInfo) -> float:
    """Tokens a second of one greedy continuation, as the engine timed it. Raises ServiceError."""
    return asyncio.run(_generate(executable, info))


@asynccontextmanager
async def _running(executable: Path, info: WeightsInfo, pooling: str | None) -> AsyncIterator[LlamaServer]:
    from sampan.gateway.llama_server import LlamaCommand, LlamaServer

    embedding = info.task != "chat"
    size = min(info.context_length, _PASS)
    settings = EngineSettings(
        context=size,
        batch=size,
        ubatch=size,
        slots=4 if embedding else 1,
        unified_kv=True,
        threads=threads(),
        embedding=embedding,
        pooling=pooling,
    )
    with tempfile.TemporaryDirectory(prefix="sampan-gate-") as folder:
        socket = Path(folder) / "engine.sock"
        command = LlamaCommand(executable, "gate", Path(info.path), socket, settings, threads(), "gate")
        server = LlamaServer(command, request_seconds=_READY_SECONDS)
        await server.start()
        try:
            await server.wait_ready(_READY_SECONDS)
            yield server
        finally:
            await server.stop()


async def _embed(
    executable: Path, info: WeightsInfo, texts: Sequence[str], progress: Progress, pooling: str | None
) -> Answered:
    import numpy as np

    from sampan import i18n

    packed: list[bytes] = []
    seconds = 0.0
    asked = [info.query_prefix + text for text in texts]
    title = i18n.text("gate.step.embed", kind=info.quantization)
    async with _running(executable, info, pooling) as server:
        await _batch(server, info, asked[:_BATCH])  # the first pass also reads the file
        with progress.task(title, len(asked)) as task:
            for start in range(0, len(asked), _BATCH):
                part = asked[start : start + _BATCH]
                begin = time.perf_counter()
                packed += await _batch(server, info, part)
                seconds += time.perf_counter() - begin
                task.advance(len(part))
    vectors = np.stack([np.frombuffer(vector, "<f4") for vector in packed])
    return Answered(vectors, len(asked) / max(seconds, 1e-9))


async def _batch(server: LlamaServer, info: WeightsInfo, part: Sequence[str]) -> tuple[bytes, ...]:
    from sampan.gateway.engine import EngineFault

    try:
        return (await server.embed(list(part))).vectors
    except EngineFault as fault:
        longest = max(part, key=len)
        raise BadInputError("gate.refused", path=info.path, text=longest[:60], detail=str(fault)[:200]) from fault


async def _generate(executable: Path, info: WeightsInfo) -> float:
    body: dict[str, object] = {"prompt": _PROMPT, "temperature": 0, "max_tokens": _TOKENS, "ignore_eos": True}
    answers = await _ask(executable, info, [("/v1/completions", body)] * 2)  # the first reads the file
    timings = answers[-1]["timings"]
    return float(timings["predicted_per_second"])


async def _ask(executable: Path, info: WeightsInfo, questions: Sequence[Question]) -> list[dict[str, Any]]:
    import orjson

    answers: list[dict[str, Any]] = []
    async with _running(executable, info, None) as server:
        for path, body in questions:
            generation = await server.generate(path, orjson.dumps(body))
            try:
                answers.append(orjson.loads(b"".join([chunk async for chunk in generation.chunks()])))
            finally:
                await generation.close()
    return answers
