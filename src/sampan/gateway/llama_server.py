"""llama-server as an Engine: its own process, a Unix socket, its errors told apart."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sampan.gateway.child import Child
from sampan.gateway.engine import (
    ANY,
    Ask,
    Embedded,
    EngineState,
    EngineStatus,
    EngineUnavailableError,
    Generation,
    Ranked,
    TextOrTokens,
)
from sampan.gateway.engine_args import engine_argv, engine_environment
from sampan.gateway.llama_api import LlamaApi
from sampan.gateway.settings import RERANK
from sampan.gateway.supervisor import USUAL_PACE, Pace, Supervisor
from sampan.gateway.upstream import UnixClient
from sampan.spec.plan import EngineSettings

_OK, _LOADING = 200, 503


@dataclass(frozen=True)
class LlamaCommand:
    """What is needed to start one llama-server. ``socket`` ends in ``.sock``: by that llama-server knows it."""

    executable: Path
    variant: str
    weights: Path
    socket: Path
    settings: EngineSettings
    threads: int
    model_id: str
    task: str = ""


#: the engine's warning about its own HTTP door, which is a private socket here: whoever calls comes by the gateway
_MOOT = "no API key is set and CORS allows all origins"


def _log(line: str) -> None:
    if _MOOT not in line:
        logging.getLogger("sampan.engine").info(line)


class LlamaServer:
    """See engine.Engine."""

    def __init__(
        self,
        command: LlamaCommand,
        *,
        request_seconds: float,
        on_line: Callable[[str], None] | None = None,
        pace: Pace = USUAL_PACE,
    ) -> None:
        self._command = command
        self._on_line = on_line or _log
        self._supervisor = Supervisor(command.variant, self._spawn, self._probe, pace)
        self._client = UnixClient(command.socket, self._state_after_loss, request_seconds)
        self._api = LlamaApi(self._client, command.settings)

    @property
    def status(self) -> EngineStatus:
        """See Engine."""
        return EngineStatus(self._supervisor.state, self._supervisor.restarts, self._command.variant)

    @property
    def pid(self) -> int | None:
        """The engine's process id, None where it does not run."""
        return self._supervisor.pid

    async def start(self) -> None:
        """See Engine."""
        self._supervisor.start()

    async def wait_ready(self, seconds: float) -> None:
        """See Engine."""
        await self._supervisor.wait_ready(seconds)

    async def stop(self) -> None:
        """See Engine."""
        await self._supervisor.stop()
        await self._client.close()
        self._command.socket.unlink(missing_ok=True)

    async def embed(self, inputs: Sequence[TextOrTokens], _ask: Ask = ANY, /) -> Embedded:
        """See Engine."""
        self._require_ready()
        return await self._api.embed(inputs)

    async def generate(self, path: str, body: bytes, _ask: Ask = ANY, /) -> Generation:
        """See Engine."""
        self._require_ready()
        return await self._api.generate(path, body)

    async def rerank(self, query: str, documents: Sequence[str], _ask: Ask = ANY, /) -> Ranked:
        """See Engine."""
        self._require_ready()
        return await self._api.rerank(query, documents)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """See Engine."""
        self._require_ready()
        return await self._api.count(texts)

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """See Engine."""
        self._require_ready()
        return await self._api.tokenize(text, special=special)

    async def takes_tools(self) -> bool:
        """See Engine."""
        self._require_ready()
        return await self._api.takes_tools()

    async def answers(self) -> bool:
        """Whether it answers a probe now."""
        return await self._client.probe("/health") == _OK

    def kill(self) -> None:
        """End the process at once; it is started again."""
        self._supervisor.kill()

    def _require_ready(self) -> None:
        if self._supervisor.state is not EngineState.READY:
            raise EngineUnavailableError(self._supervisor.state, reached=False)

    def _state_after_loss(self) -> EngineState:
        """A lost connection while READY means that the process is dying and its end is not reported yet."""
        state = self._supervisor.state
        return EngineState.RESTARTING if state is EngineState.READY else state

    def _spawn(self) -> Child:
        command = self._command
        command.socket.unlink(missing_ok=True)
        argv = engine_argv(
            command.executable,
            command.weights,
            command.socket,
            command.settings,
            threads=command.threads,
            alias=command.model_id,
            rerank=command.task == RERANK,
        )
        return Child(argv, engine_environment(os.environ), self._on_line)

    async def _probe(self) -> EngineState:
        if not self._command.socket.exists():
            return EngineState.STARTING
        status = await self._client.probe("/health")
        if status == _OK:
            return EngineState.READY
        return EngineState.LOADING if status == _LOADING else EngineState.STARTING
