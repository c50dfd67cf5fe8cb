"""The needed words, and which of them a text can hold at all: told from its distinct words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from sampan.doctor import knowledge, normal
from sampan.doctor.knowledge import Anchor
from sampan.doctor.normal import FORM

_ASCII = bytes(byte for byte in range(128) if byte != 10)
#: ASCII letters in lower case; the rest parts words
LETTERS = bytes(byte | 32 if chr(byte & ~32) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" else 32 for byte in range(256))


@cache
def anchors() -> tuple[Anchor, ...]:
    """Of the cases, and of what programs say in Chinese."""
    return (*knowledge.index(), *(knowledge.anchor(word.translate(FORM), ()) for word in normal.phrases()))


def possible(text: bytes, words: set[bytes], vocabulary: bytes) -> list[Anchor]:
    """Those whose runs of letters the text has. ``vocabulary``: its distinct words as one text."""
    whole = runs().keys() & words
    known: dict[bytes, bool] = {}

    def has(part: bytes) -> bool:
        if part not in known:
            known[part] = part in vocabulary
        return known[part]

    found = [one for one in anchors() if not one.other and one.whole <= whole and all(map(has, one.parts))]
    return found if text.isascii() else [*found, *_possible_in_other_scripts(text)]


@cache
def runs() -> Counter[bytes]:
    """Every whole run of the anchors, with how many have it."""
    return Counter(run for anchor in anchors() for run in anchor.whole)


def _possible_in_other_scripts(text: bytes) -> Iterator[Anchor]:
    """Anchors with Chinese: looked for in the distinct lines without ASCII, by the pairs of letters they share."""
    joined = b"\n".join(set(text.translate(None, _ASCII).split(b"\n")))
    letters = set(joined.decode("utf-8", "ignore"))
    for pair, anchors in _by_pair():
        if letters.issuperset(pair.decode()) and pair in joined:
            yield from (anchor for anchor in anchors if anchor.other in joined)


@cache
def _by_pair() -> tuple[tuple[bytes, tuple[Anchor, ...]], ...]:
    """A few pairs of letters, each with the anchors that hold it: greedily the most shared first."""
    left: dict[str, list[Anchor]] = {}
    for anchor in anchors():
        if anchor.other:
            left.setdefault(anchor.other.decode(), []).append(anchor)
    found = []
    while left:
        counts = Counter(pair for word in left for pair in {word[at : at + 2] for at in range(max(1, len(word) - 1))})
        pair = counts.most_common(1)[0][0]
        found.append((pair.encode(), tuple(one for word, each in left.items() if pair in word for one in each)))
        left = {word: each for word, each in left.items() if pair not in word}
    return tuple(found)
