"""How long texts are, by the model's own tokenizer; too long ones are refused or cut.

The tokenizer is asked only where a text could be too long: no tokenizer makes more tokens of a text than its
compatibility-composed form has bytes (SentencePiece composes so first; byte fallback is the worst case).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from sampan.gateway.engine import Engine, InputTooLongError, TextOrTokens

_ADDED = 4  # start, end, a leading space, and one to be sure
CUTS = ("none", "start", "end")


@dataclass(frozen=True)
class Cut:
    """A text that was cut: ``tokens`` it had, ``kept`` of them, start and end included."""

    index: int
    tokens: int
    kept: int


def estimate(text: TextOrTokens) -> int:
    """Tokens, roughly: for bounds of queues and passes. Four ASCII letters or one other sign are a token."""
    if not isinstance(text, str):
        return len(text)
    if text.isascii():
        return 2 + len(text) // 4
    size = len(text)
    others = (len(text.encode("utf-8", "surrogatepass")) - size) // 2 or 1
    return 2 + others + max(0, size - others) // 4


def surely_fits(text: TextOrTokens, limit: int) -> bool:
    """True where no tokenizer could make more than ``limit`` tokens of it."""
    if not isinstance(text, str):
        return len(text) <= limit
    if text.isascii():
        return len(text) + _ADDED <= limit
    if len(text) + _ADDED > limit:
        return False
    return len(normalize("NFKC", text).encode("utf-8", "surrogatepass")) + _ADDED <= limit


class Lengths:
    """For one engine and its limit of tokens a text."""

    def __init__(self, engine: Engine, limit: int | None) -> None:
        self._engine = engine
        self._limit = limit
        self._frame: tuple[int, int] | None = None  # special tokens before and after a text

    async def fit(
        self, inputs: Sequence[TextOrTokens], cut: str = "none"
    ) -> tuple[Sequence[TextOrTokens], tuple[Cut, ...]]:
        """The inputs, cut where asked. Raises InputTooLongError with the index of the first that is too long."""
        limit = self._limit
        if limit is None:
            return inputs, ()
        doubtful = [index for index, text in enumerate(inputs) if not surely_fits(text, limit)]
        if not doubtful:
            return inputs, ()
        counts = await self._counts(inputs, doubtful)
        fitted, cuts = list(inputs), []
        for index, tokens in counts.items():
            if tokens <= limit:
                continue
            if cut == "none":
                raise InputTooLongError(tokens, limit, index)
            fitted[index] = await self._cut(inputs[index], limit, cut)
            cuts.append(Cut(index, tokens, limit))
        return fitted, tuple(cuts)

    async def _counts(self, inputs: Sequence[TextOrTokens], doubtful: Sequence[int]) -> dict[int, int]:
        """The exact tokens of those that might not fit."""
        texts = {index: text for index in doubtful if isinstance(text := inputs[index], str)}
        counted = await self._engine.count(list(texts.values())) if texts else ()
        exact = dict(zip(texts, counted, strict=True))
        return {index: exact.get(index, len(inputs[index])) for index in doubtful}

    async def _cut(self, text: TextOrTokens, limit: int, cut: str) -> tuple[int, ...]:
        if not isinstance(text, str):  # as it is: no start or end to keep
            return text[:limit] if cut == "end" else text[-limit:]
        before, after = await self._specials()
        tokens = await self._engine.tokenize(text)
        middle = tokens[before : len(tokens) - after]
        room = limit - before - after
        kept = middle[:room] if cut == "end" else middle[-room:]
        return (*tokens[:before], *kept, *tokens[len(tokens) - after :])

    async def _specials(self) -> tuple[int, int]:
        """How many tokens the engine puts before and after a text: found by asking with and without."""
        if self._frame is None:
            whole = await self._engine.tokenize("a")
            bare = await self._engine.tokenize("a", special=False)
            places = (at for at in range(len(whole)) if whole[at : at + len(bare)] == bare)
            before = next(places, 0)
            self._frame = before, max(0, len(whole) - before - len(bare))
        return self._frame
