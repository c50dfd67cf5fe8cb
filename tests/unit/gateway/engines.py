"""An Engine in memory whose every step a test decides."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Sequence

from tests.fakes.engine import vector_of

from sampan.gateway.engine import (
    ANY,
    Ask,
    Embedded,
    EngineState,
    EngineStatus,
    Generation,
    Ranked,
    TextOrTokens,
)
from sampan.gateway.vectors import from_floats


class Said:
    """A generation that is done. See engine.Generation."""

    content_type = "application/json"

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b'{"choices": []}'

    async def close(self) -> None:
        return


class ScriptedEngine:
    """``passes`` are the texts of each call; ``gate`` holds a call back until it is set; ``faults`` go by text."""

    def __init__(self) -> None:
        self.state = EngineState.READY
        self.passes: list[list[TextOrTokens]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.faults: dict[TextOrTokens, list[Exception]] = {}
        self.vectors: dict[TextOrTokens, bytes] = {}
        self.counted: list[str] = []
        self.cancelled = 0

    @property
    def status(self) -> EngineStatus:
        return EngineStatus(self.state, 0, "scripted")

    async def start(self) -> None:
        return

    async def wait_ready(self, _seconds: float) -> None:
        return

    async def stop(self) -> None:
        return

    async def embed(self, inputs: Sequence[TextOrTokens], _ask: Ask = ANY, /) -> Embedded:
        self.passes.append(list(inputs))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        for text in inputs:
            if self.faults.get(text):
                raise self.faults[text].pop(0)
        return Embedded(tuple(self.vector(text) for text in inputs), sum(map(self.tokens, inputs)))

    def vector(self, text: TextOrTokens) -> bytes:
        return self.vectors.get(text) or from_floats(array("f", vector_of(str(text))))

    def tokens(self, text: TextOrTokens) -> int:
        return len(text.split()) + 2 if isinstance(text, str) else len(text)

    async def generate(self, _path: str, _body: bytes, _ask: Ask = ANY, /) -> Generation:
        return Said()

    async def rerank(self, query: str, documents: Sequence[str], _ask: Ask = ANY, /) -> Ranked:
        return Ranked(tuple(float(len(text)) for text in documents), len(documents) * len(query))

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        self.counted += texts
        return tuple(map(self.tokens, texts))

    async def takes_tools(self) -> bool:
        return True

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        words = tuple(1000 + len(word) for word in text.split())
        return (101, *words, 102) if special else words
