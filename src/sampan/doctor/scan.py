"""Reads a text once, in pieces, and gives the places where a case's pattern stands.

A hundred megabytes take a second or two on one core: the distinct forms of a piece's lines are searched for needed
words; a form that was seen and meant nothing is not looked at again; only the rest meets regular expressions.
Memory is bounded by the size of a piece and of the table of seen forms, time by what one piece may cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

from sampan.doctor import search
from sampan.doctor.block import Block
from sampan.doctor.conditions import Fact
from sampan.doctor.knowledge import Needle
from sampan.doctor.model import Evidence, Hit
from sampan.doctor.pieces import pieces
from sampan.doctor.places import Effort
from sampan.doctor.tries import Match, Tries
from sampan.doctor.worth import MOST_ALIKE, alike, worth

MOST_HITS = 200  # of one case that are kept with their values; the rest is only counted
_MOST_FORMS = 100_000
_MOST_SUSPICIOUS = 5


@dataclass
class Scanned:
    """What one or several texts gave. ``left_out``: lines with words of failures that were too many to read."""

    hits: list[Hit] = field(default_factory=list)
    times: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Fact] = field(default_factory=dict)
    suspicious: list[Evidence] = field(default_factory=list)
    lines: int = 0
    size: int = 0
    left_out: int = 0


class Scanner:
    """One scanner may read several texts; forms that meant nothing are remembered across them."""

    def __init__(self) -> None:
        self._empty: set[int] = set()  # hashes of forms
        self._meant: dict[int, tuple[str, ...]] = {}
        self._effort = Effort()
        self._last: dict[str, tuple[str, int]] = {}
        self._tries = Tries()
        self.found = Scanned()

    def read(self, stream: BinaryIO, source: str, *, keep: Callable[[bytes], None] | None = None) -> None:
        """Scan a stream to its end. ``keep`` receives its text as UTF-8, as it comes."""

        def take(block: bytes) -> None:
            self.found.size += len(block)
            if keep:
                keep(block)

        for piece in pieces(stream, take):
            self._block(Block(piece), source)
            ours = piece.text[piece.start : piece.end]
            self.found.lines += ours.count(b"\n")
        self.found.lines += bool(ours and not ours.endswith(b"\n"))
        self.found.left_out += self._tries.budget.left_out
        self._tries.budget.left_out = 0

    def _block(self, block: Block, source: str) -> None:
        fresh = [form for form in dict.fromkeys(block.forms) if hash(form) not in self._empty]
        hot, left_out = search.hot(fresh, self._effort)
        self.found.left_out += left_out
        bad = {form for form in search.bad(fresh) if form not in hot}
        groups: dict[bytes, list[int]] = {}
        if hot or bad:
            for index, form in enumerate(block.forms):
                if form in hot or form in bad:
                    groups.setdefault(form, []).append(index)
        suspects = [groups[form][0] for form in bad]
        for form in bad:
            self._remember(form)
        for index in sorted({index for form in hot for index in worth(block, groups[form], hot[form])}):
            if not self._line(block, index, hot[block.forms[index]], source):
                suspects.append(index)
        for form in hot:
            self._count(form, len(groups[form]) - MOST_ALIKE)
        self._suspect(block, suspects, source)

    def _line(self, block: Block, index: int, needles: tuple[Needle, ...], source: str) -> bool:
        """Take what a line means; False where it means nothing."""
        form, unit = block.forms[index], block.units[index]
        key = hash(form)
        if key in self._empty:
            return True
        if self._count(form, 1):
            return True
        if unit.isascii():
            low = unit.lower()
            needles = tuple(one for one in needles if all(word in low for word in one.exact))
        if all(self._enough(one.name) for one in needles):
            return bool(needles)
        matches, touched = self._tries.line(unit, needles, partial(block.around, index))
        for match in matches:
            self._take(match, (source, block.line(index)), partial(block.evidence, source, index, match.place))
        if alike(form, needles):
            if touched:
                self._meant[key] = tuple(touched)
            else:
                self._remember(form)
        return bool(touched)

    def _enough(self, name: str) -> bool:
        return (
            self.found.times[name] >= MOST_HITS
            or self._tries.tired(name)
            or name.removeprefix("=") in self.found.facts
        )

    def _count(self, form: bytes, lines: int) -> bool:
        """Count lines of a form whose cases have all the evidence that is kept; whether it is so."""
        names = self._meant.get(hash(form), ())
        if lines < 1 or not names or not all(map(self._enough, names)):
            return False
        self.found.times.update({name: lines for name in names if self.found.times[name]})
        return True

    def _take(self, match: Match, line: tuple[str, int], where: Callable[[], Evidence]) -> None:
        """Keep it, once for each line: windows overlap."""
        if self._last.get(match.needle.name) == line:
            return
        self._last[match.needle.name] = line
        case = match.needle.case
        if case is None:
            place = where()
            fact = Fact(match.values["value"].strip(), f"{place.source}:{place.line}")
            self.found.facts.setdefault(match.needle.fact, fact)
            return
        self.found.times[case.code] += 1
        if self.found.times[case.code] <= MOST_HITS:
            self.found.hits.append(Hit(case.code, where(), match.values))

    def _remember(self, form: bytes) -> None:
        if len(self._empty) >= _MOST_FORMS:
            self._empty.clear()
        if len(self._meant) >= _MOST_FORMS:
            self._meant.clear()
        self._empty.add(hash(form))

    def _suspect(self, block: Block, indexes: Iterable[int], source: str) -> None:
        """Keep the last lines that look bad and mean nothing."""
        found = [index for index in sorted(indexes) if search.looks_bad(block.forms[index])]
        for index in found[-_MOST_SUSPICIOUS:]:
            kept = self.found.suspicious[1 - _MOST_SUSPICIOUS :]
            self.found.suspicious = [*kept, block.evidence(source, index)]
