"""Texts for benchmarks: real sentences with their real lengths, Chinese and English, of this project's documents."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

_DOCS = Path(__file__).parents[1] / "docs"
LONGEST_ZH, LONGEST_EN = 50, 160  # characters: below 60 tokens


def sentences() -> list[str]:
    """At most 60 tokens each, shuffled the same way every time."""
    found: set[str] = set()
    for path in sorted(_DOCS.rglob("*.md")):
        text = re.sub(r"```.*?```|[`*|#>\[\]()]", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for sentence in re.split(r"(?<=[.。；;！!？?])\s*|\n+", text):
            words = " ".join(sentence.split())
            if 4 <= len(words) <= (LONGEST_EN if words.isascii() else LONGEST_ZH):
                found.add(words)
    texts = sorted(found)
    random.Random(7).shuffle(texts)  # noqa: S311  (a fixed order, not a secret)
    return texts


def distinct(texts: list[str]) -> Iterator[str]:
    """Each text once; after all have been sent, again with a number, so that none ever comes twice."""
    for turn in itertools.count():
        for text in texts:
            yield text if not turn else f"{turn} {text}"
