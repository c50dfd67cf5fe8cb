"""One piece's lines as the scanner sees them: units of bounded length, and their forms.

A unit is a line or, of a line without end, a window on it. Units that differ in digits or in capitals only have
one form: a log of a million requests has few.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate

from sampan.doctor import normal
from sampan.doctor.model import Evidence
from sampan.doctor.normal import FORM
from sampan.doctor.pieces import CONTEXT, Piece

LONGEST = normal.LONGEST  # bytes of a line that is looked at as a whole, and of a window
STEP = 1500
_SHOWN = 400  # letters of a line that are shown


class Block:
    """The lines of a piece. ``units`` and ``forms`` correspond; ``line`` and ``around`` take an index of them."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        ours = piece.text[piece.start : piece.end]
        whole = ours.removesuffix(b"\n")
        if ours and whole == ours:  # a line that the piece cuts: as much more of it as one window sees
            whole += piece.text[piece.end : piece.end + STEP].partition(b"\n")[0]
        units, forms = (whole.split(b"\n"), whole.translate(FORM).split(b"\n")) if ours else ([], [])
        self._starts: list[tuple[int, int]] | None = None
        if _has_long(whole):
            self._starts, units = _windows(units)
            forms = [unit.translate(FORM) for unit in units]
        self.units, self.forms = units, forms

    @cached_property
    def _offsets(self) -> list[int]:
        return list(accumulate((len(unit) + 1 for unit in self.units), initial=0))

    def line(self, index: int) -> int:
        """The line's number in the text, from 1."""
        return self._piece.first_line + (index if self._starts is None else self._starts[index][0])

    def evidence(self, source: str, index: int, middle: int = 0) -> Evidence:
        """The exact line, without colours; of one too long to show, what stands around the letter ``middle``."""
        number = self.line(index)
        if self._starts is None:
            text = normal.without_colour(self._piece.raw_line(number)).decode("utf-8", "replace").strip("\r\n")
        else:
            text = self.units[index].decode("utf-8", "replace").strip()
        if len(text) > _SHOWN:
            first = max(0, min(middle - 40, len(text) - _SHOWN)) if self._starts else 0
            text = f"{'…' if first else ''}{text[first : first + _SHOWN]}…"
        return Evidence(source, number, text)

    def around(self, index: int) -> str:
        """The plain text around a unit, some kilobytes on each side."""
        start = self._piece.start + (self._offsets[index] if self._starts is None else self._starts[index][1])
        end = start + len(self.units[index])
        return self._piece.text[max(0, start - CONTEXT) : end + CONTEXT].decode("utf-8", "replace")


def _has_long(text: bytes) -> bool:
    """Whether a line is longer than is looked at as a whole."""
    start = 0
    while len(text) - start > LONGEST:
        start = text.rfind(b"\n", start, start + LONGEST + 1) + 1
        if start == 0:
            return True
    return False


def _windows(lines: list[bytes]) -> tuple[list[tuple[int, int]], list[bytes]]:
    """(line from 0, offset in the piece) of each unit, and the units: short lines whole, long ones in windows."""
    starts: list[tuple[int, int]] = []
    units: list[bytes] = []
    offset = 0
    for number, line in enumerate(lines):
        last = max(1, len(line) - LONGEST + STEP)
        for start in range(0, last, STEP):
            starts.append((number, offset + start))
            units.append(line[start : start + LONGEST])
        offset += len(line) + 1
    return starts, units
