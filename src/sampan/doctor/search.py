"""Which lines of a piece may concern a case: by plain substring search, for words that can be there at all.

A piece's vocabulary (its distinct words) rules most of the needed words out before anything is searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from sampan.doctor import knowledge, normal
from sampan.doctor.knowledge import Anchor, Needle
from sampan.doctor.pieces import Piece

HALF_LINE = 1000  # bytes on each side of a word that are looked at, should a line be longer
_MANY, _PART = 60, 24 << 10  # more anchors than this are sorted out again, part by part
_ASCII = bytes(byte for byte in range(128) if byte != 10)
#: ASCII letters in lower case; the rest parts words
_LETTERS = bytes(byte | 32 if chr(byte & ~32) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" else 32 for byte in range(256))
#: words of failure that need not concern any case
BAD = (b"error:", b"fatal", b"traceback (most", b"panic:", b"assert", b"exception:")


@cache
def anchors() -> tuple[Anchor, ...]:
    """Of the cases, of what looks bad, and of what programs say in Chinese."""
    return (*knowledge.index(), *(knowledge.anchor(word, ()) for word in (*BAD, *normal.phrases())))


def _possible(text: bytes, anchors: Sequence[Anchor]) -> list[Anchor]:
    """Those whose runs of letters the text has."""
    vocabulary = set(text.translate(_LETTERS).split())
    joined = b" ".join(vocabulary)
    known: dict[bytes, bool] = {}

    def has(part: bytes) -> bool:
        if part not in known:
            known[part] = part in joined
        return known[part]

    found = [one for one in anchors if not one.other and one.whole <= vocabulary and all(map(has, one.parts))]
    return found if text.isascii() else [*found, *_possible_in_other_scripts(text)]


def _possible_in_other_scripts(text: bytes) -> Iterator[Anchor]:
    """Anchors with Chinese: looked for in the distinct lines without ASCII, by the pairs of letters they share."""
    joined = b"\n".join(set(text.translate(None, _ASCII).split(b"\n")))
    for pair, anchors in _by_pair():
        if pair in joined:
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


def candidates(lower: bytes, piece: Piece) -> dict[int, tuple[int, tuple[Needle, ...]]]:
    """Start of each line that holds an anchor's word -> its end and the needles to try."""
    found: dict[int, tuple[int, tuple[Needle, ...]]] = {}
    for first, last, possible in _searches(lower, piece):
        for anchor in possible:
            position = lower.find(anchor.word, first, last)
            while position >= 0:
                start = max(lower.rfind(b"\n", piece.start, position) + 1, piece.start, position - HALF_LINE)
                end = lower.find(b"\n", position, position + HALF_LINE)
                end = min(end if end >= 0 else position + HALF_LINE, len(lower))
                known = found.get(start)
                found[start] = (max(end, known[0]), (*known[1], *anchor.needles)) if known else (end, anchor.needles)
                position = lower.find(anchor.word, end, last)
    return found


def _searches(lower: bytes, piece: Piece) -> Iterator[tuple[int, int, list[Anchor]]]:
    """What to search where: the whole piece, or parts of it with fewer anchors each, should there be many."""
    possible = _possible(lower[piece.start : piece.end + HALF_LINE], anchors())
    if len(possible) <= _MANY:
        yield piece.start, piece.end, possible
        return
    start = piece.start
    while start < piece.end:
        cut = lower.find(b"\n", start + _PART, piece.end)
        end = cut + 1 if cut >= 0 else piece.end
        fewer = _possible(lower[start : end + HALF_LINE], possible)
        if len(fewer) > len(possible) // 2:  # parting does not help this text
            yield start, piece.end, possible
            return
        yield start, end, fewer
        start = end
