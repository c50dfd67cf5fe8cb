"""llama-server's rules about lengths, and nothing else: what a planned engine takes and refuses.

Read in llama.cpp 0c1e570, tools/server/server-context.cpp (``can_split``, ``n_ctx_slot``, ``update_slots``).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sampan.gateway.engine import (
    ANY,
    Ask,
    Embedded,
    EngineState,
    EngineStatus,
    Generation,
    InputTooLongError,
    Ranked,
    TextOrTokens,
)
from sampan.spec.plan import EngineSettings

_FRAME = 2  # a start and an end


class PlannedEngine:
    """See engine.Engine. A word is a token; every text gets a start and an end."""

    def __init__(self, settings: EngineSettings, *, trained: int, splits: bool) -> None:
        self._settings, self._splits = settings, splits
        share = settings.context if settings.unified_kv else settings.context // settings.slots
        share = -(-share // 256) * 256
        self._slot = min(share, settings.slot_tokens or share, trained)

    @property
    def status(self) -> EngineStatus:
        return EngineStatus(EngineState.READY, 0, "planned")

    async def start(self) -> None:
        return

    async def wait_ready(self, seconds: float) -> None:
        del seconds

    async def stop(self) -> None:
        return

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        return tuple(len(text.split()) + _FRAME for text in texts)

    async def takes_tools(self) -> bool:
        return True

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        return (1,) * (len(text.split()) + (_FRAME if special else 0))

    async def embed(self, inputs: Sequence[TextOrTokens], _ask: Ask = ANY, /) -> Embedded:
        sizes = [len(each) if not isinstance(each, str) else len(each.split()) + _FRAME for each in inputs]
        for size in sizes:
            self.take(size)
        return Embedded(tuple(struct.pack("<f", 1.0) for _ in inputs), sum(sizes))

    def take(self, tokens: int) -> None:
        """Raises InputTooLongError where the engine would."""
        if self._splits:
            if tokens >= self._slot:
                raise InputTooLongError(tokens, self._slot)
        elif tokens > min(self._settings.ubatch, self._settings.batch, self._slot):
            raise InputTooLongError(tokens, self._settings.ubatch)

    async def generate(self, path: str, body: bytes, _ask: Ask = ANY, /) -> Generation:
        raise NotImplementedError

    async def rerank(self, query: str, documents: Sequence[str], _ask: Ask = ANY, /) -> Ranked:
        raise NotImplementedError
