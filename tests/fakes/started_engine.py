"""A started engine, fake or real, for tests that must hold for both."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes import real_engine
from tests.fakes.engine import write_executable

from sampan.gateway.llama_server import LlamaCommand, LlamaServer
from sampan.spec.plan import EngineSettings

LIMIT = 64  # tokens
READY_SECONDS = 120.0


@dataclass(frozen=True)
class Running:
    """One started engine of the given kind."""

    server: LlamaServer
    command: LlamaCommand


def settings(task: str) -> EngineSettings:
    return EngineSettings(
        context=LIMIT,
        batch=LIMIT,
        ubatch=LIMIT,
        slots=1,
        unified_kv=True,
        threads=0,
        embedding=task == "embedding",
        pooling="mean" if task == "embedding" else None,
    )


def command(kind: str, task: str, folder: Path) -> LlamaCommand:
    """What to start; skips with the reason where this machine has no real engine or weights."""
    if kind == "fake":
        executable, weights = write_executable(folder), folder / "fake.gguf"
        weights.touch()
    else:
        executable, weights = (
            needed(real_engine.executable(), "llama-server"),
            needed(real_engine.weights(task), f"GGUF of a model for {task}"),
        )
    return LlamaCommand(executable, kind, weights, folder / "engine.sock", settings(task), 1, f"{kind}-{task}")


def needed(path: Path | None, what: str) -> Path:
    if path is None:
        pytest.skip(f"no {what} in the store; build a bundle first, or name one by SAMPAN_TEST_*")
    return path


@contextlib.asynccontextmanager
async def running(kind: str, task: str) -> AsyncIterator[Running]:
    with tempfile.TemporaryDirectory(prefix="gw") as name:
        what = command(kind, task, Path(name))
        server = LlamaServer(what, request_seconds=120)
        await server.start()
        try:
            await server.wait_ready(READY_SECONDS)
            yield Running(server, what)
        finally:
            await server.stop()
