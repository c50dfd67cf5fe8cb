"""Answers against a golden set. Pure, and without numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

from sampan.spec.weights import GoldenChat, GoldenEmbedding, GoldenPair


@dataclass(frozen=True)
class TextResult:
    """One golden text or prompt. ``score`` is a cosine for embeddings, equal characters for chats.

    For pairs it is 1 less the difference of the scores.
    """

    text: str
    score: float
    minimum: float
    ok: bool


@dataclass(frozen=True)
class SelfTest:
    """All of them. ``ok`` is False where nothing was compared: an empty golden set proves nothing.

    ``basis``: golden (answers of an independent reference) or consistency (the service against itself, which proves
    that it computes, not that it computes the right thing).
    """

    SCHEMA: ClassVar[str] = "sampan/self-test/1"

    model: str
    url: str
    embeddings: tuple[TextResult, ...] = ()
    chats: tuple[TextResult, ...] = ()
    basis: str = "golden"
    pairs: tuple[TextResult, ...] = ()

    @property
    def ok(self) -> bool:
        """True where there were texts and each was answered as it must be."""
        results = self.embeddings + self.chats + self.pairs
        return bool(results) and all(result.ok for result in results)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Their cosine; 0 where there is none: different lengths, a zero vector, numbers that are not finite."""
    if len(one) != len(other):
        return 0.0
    lengths = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    if not lengths or not math.isfinite(lengths):
        return 0.0
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths


def judge_embedding(golden: GoldenEmbedding, answers: Sequence[Sequence[float]], minimum: float) -> TextResult:
    """The worst of several answers to one text counts (alone and in a batch it must come out the same)."""
    worst = min(cosine(golden.vector, answer) for answer in answers)
    return TextResult(golden.text, worst, minimum, worst >= minimum)


def judge_chat(golden: GoldenChat, answer: str, minimum: int) -> TextResult:
    """As many first characters as ``minimum`` (or the whole reference, where it is shorter) must be equal."""
    pairs = zip(golden.continuation, answer, strict=False)
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    needed = min(minimum, len(golden.continuation))
    return TextResult(golden.prompt, float(equal), float(needed), equal >= needed > 0)


def judge_pair(golden: GoldenPair, score: float, difference: float) -> TextResult:
    """The score may be off by ``difference``; one that is not a number is wrong."""
    close = 1 - abs(score - golden.score)
    return TextResult(golden.document, close, 1 - difference, close >= 1 - difference)
