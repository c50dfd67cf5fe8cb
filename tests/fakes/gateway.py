"""A whole gateway over the fake engine, in a thread of the test's own process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import uvicorn
from aiohttp import web
from tests.fakes.engine import DIMENSIONS, FakeLlamaServer

from sampan.gateway.app import create_app
from sampan.gateway.engine import ANY, Ask, Embedded, EngineState, EngineStatus, Generation, Ranked, TextOrTokens
from sampan.gateway.llama_api import LlamaApi
from sampan.gateway.settings import Limits, ServedModel
from sampan.gateway.upstream import UnixClient
from sampan.spec.plan import EngineSettings

EMBEDDING_MODEL = ServedModel("fake-embedding", "embedding", DIMENSIONS, 1700000000)
CHAT_MODEL = ServedModel("fake-chat", "chat", None, 1700000000)


def settings(*, embedding: bool, tokens: int = 512) -> EngineSettings:
    """Small engine settings."""
    return EngineSettings(
        context=tokens, batch=tokens, ubatch=tokens, slots=2, unified_kv=True, threads=0, embedding=embedding
    )


class RunningEngine:
    """An Engine whose process somebody else runs. See engine.Engine."""

    def __init__(self, socket_path: Path, *, embedding: bool, seconds: float = 30.0) -> None:
        self.state = EngineState.READY
        self._client = UnixClient(socket_path, lambda: self.state, seconds)
        self._api = LlamaApi(self._client, settings(embedding=embedding))

    @property
    def status(self) -> EngineStatus:
        return EngineStatus(self.state, 0, "fake")

    async def start(self) -> None:
        return

    async def wait_ready(self, seconds: float) -> None:
        await asyncio.sleep(0 * seconds)

    async def embed(self, inputs: Sequence[TextOrTokens], _ask: Ask = ANY, /) -> Embedded:
        return await self._api.embed(inputs)

    async def generate(self, path: str, body: bytes, _ask: Ask = ANY, /) -> Generation:
        return await self._api.generate(path, body)

    async def rerank(self, query: str, documents: Sequence[str], _ask: Ask = ANY, /) -> Ranked:
        return await self._api.rerank(query, documents)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        return await self._api.count(texts)

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        return await self._api.tokenize(text, special=special)

    async def takes_tools(self) -> bool:
        return await self._api.takes_tools()

    async def stop(self) -> None:
        await self._client.close()


@contextlib.asynccontextmanager
async def fake_engine(folder: Path, fake: FakeLlamaServer, *, seconds: float = 30.0) -> AsyncIterator[RunningEngine]:
    """The fake on a socket in ``folder``, and an Engine that talks to it."""
    path = folder / "engine.sock"
    runner = web.AppRunner(fake.app(), handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.UnixSite(runner, str(path)).start()
    engine = RunningEngine(path, embedding=fake.embeddings, seconds=seconds)
    try:
        yield engine
    finally:
        await engine.stop()
        await runner.cleanup()


class ThreadedGateway:
    """``url`` of a gateway with a fake engine behind it."""

    def __init__(self, folder: Path, fake: FakeLlamaServer, model: ServedModel, limits: Limits) -> None:
        self.fake = fake
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._model = model
        self._limits = limits
        self._started = threading.Event()
        self._server: uvicorn.Server | None = None

    async def _run(self) -> None:
        async with fake_engine(self._folder, self.fake) as engine:
            app = create_app(engine, self._model, self._limits)
            config = uvicorn.Config(
                app, http="httptools", ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=1
            )
            self._server = uvicorn.Server(config)
            asyncio.get_running_loop().call_soon(self._started.set)
            await self._server.serve([self.listener])

    @contextlib.contextmanager
    def running(self) -> Iterator[ThreadedGateway]:
        """The gateway while the block runs."""
        thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        thread.start()
        self._started.wait(10)
        try:
            yield self
        finally:
            if self._server is not None:
                self._server.should_exit = True
            thread.join(10)


@contextlib.contextmanager
def gateway(folder: Path, model: ServedModel, limits: Limits = Limits()) -> Iterator[ThreadedGateway]:  # noqa: B008
    """A running gateway for one model."""
    fake = FakeLlamaServer(embeddings=model.task == "embedding", alias=model.id, reranking=model.task == "rerank")
    with ThreadedGateway(folder, fake, model, limits).running() as running:
        yield running
