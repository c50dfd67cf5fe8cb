"""Of many lines of one form, the ones to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sampan.doctor.block import Block
from sampan.doctor.knowledge import Needle

MOST_ALIKE = 200  # lines of one form in one piece
_MOST_UNSURE = 2000  # of them, where it is not plain which digits count


def alike(form: bytes, needles: Iterable[Needle]) -> bool:
    """Whether all lines of the form mean the same."""
    return b"0" not in form or all(needle.blind for needle in needles)


def worth(block: Block, rows: list[int], needles: Iterable[Needle]) -> Iterator[int]:
    """The lines of one form to look at: the first ones, and those with the very digits that a pattern wants."""
    yield from rows[:MOST_ALIKE]
    if len(rows) <= MOST_ALIKE or b"0" not in block.forms[rows[0]]:
        return
    text = b"\n".join(block.units[row] for row in rows).lower()
    size = len(block.forms[rows[0]]) + 1  # lines of one form are of one length
    for needle in needles:
        position = text.find(needle.exact[0]) if needle.exact else -1
        for _ in range(MOST_ALIKE):
            if position < 0:
                break
            yield rows[position // size]
            position = text.find(needle.exact[0], (position // size + 1) * size)
        if not needle.blind and not needle.exact:
            yield from rows[:_MOST_UNSURE]
