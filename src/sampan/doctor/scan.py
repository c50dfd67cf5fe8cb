"""Reads a text once, in pieces, and gives the places where a case's pattern stands.

A hundred megabytes take a second or two on one core: ``search`` finds the lines that may concern a case; a line of
a form that was seen and meant nothing is not looked at again; only the rest meets regular expressions. Memory is
bounded by the size of a piece and of the table of seen forms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

from sampan.doctor import derive, normal, patterns
from sampan.doctor.conditions import Fact
from sampan.doctor.knowledge import Needle
from sampan.doctor.model import Case, Evidence, Hit
from sampan.doctor.pieces import Piece, pieces
from sampan.doctor.search import BAD, anchors, candidates

_MOST_HITS = 200  # of one case that are kept with their values; the rest is only counted
_MOST_FORMS = 200_000
_MOST_TRIES = 50_000  # of one pattern: beyond that, a text is made to slow us down
_DIGITS = b"0123456789"
_HARMLESS = (b" 0 error", b"no error", b"0 failed", b"werror", b"non-fatal")


@dataclass
class Scanned:
    """What one or several texts gave."""

    hits: list[Hit] = field(default_factory=list)
    times: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Fact] = field(default_factory=dict)
    suspicious: list[Evidence] = field(default_factory=list)
    lines: int = 0
    size: int = 0


class Scanner:
    """One scanner may read several texts; forms that meant nothing are remembered across them."""

    def __init__(self) -> None:
        self._empty: set[bytes] = set()
        self._meant: dict[bytes, tuple[str, ...]] = {}
        self._tries: Counter[str] = Counter()
        self._looked: Counter[str] = Counter()
        self.found = Scanned()

    def read(self, stream: BinaryIO, source: str, *, keep: Callable[[bytes], None] | None = None) -> None:
        """Scan a stream to its end. ``keep`` receives its text as UTF-8, as it comes."""

        def take(block: bytes) -> None:
            self.found.size += len(block)
            if keep:
                keep(block)

        for piece in pieces(stream, take):
            self._piece(piece, source)
            ours = piece.text[piece.start : piece.end]
            self.found.lines += ours.count(b"\n")
        self.found.lines += bool(ours and not ours.endswith(b"\n"))

    def _piece(self, piece: Piece, source: str) -> None:
        lower = piece.text.lower()
        found = candidates(lower, piece)
        line, position = piece.first_line, piece.start
        for start in sorted(found):
            end, needles = found[start]
            form = lower[start:end].translate(None, _DIGITS)
            if form in self._empty:
                continue
            if not form.isascii():
                needles = (*needles, *self._in_chinese(lower[start:end]))
            line += lower.count(b"\n", position, start)
            position = start
            if not needles:  # it only looks bad
                self._suspect(form, piece.evidence(source, line))
                self._remember(form)
                continue
            self._line(piece, (start, end), needles, partial(piece.evidence, source, line))

    def _in_chinese(self, line: bytes) -> Iterator[Needle]:
        """The needles of a line that says in Chinese what the cases know in English."""
        meant = normal.translated(line).lower()
        if meant != line:
            for anchor in anchors():
                if anchor.word in meant:
                    yield from anchor.needles

    def _remember(self, form: bytes) -> None:
        if len(self._empty) >= _MOST_FORMS:
            self._empty.clear()
        self._empty.add(form)

    def _suspect(self, line: bytes, where: Evidence) -> None:
        if not any(word in line for word in _HARMLESS):
            self.found.suspicious = [*self.found.suspicious[-4:], where]

    def _line(
        self, piece: Piece, span: tuple[int, int], needles: tuple[Needle, ...], where: Callable[[], Evidence]
    ) -> None:
        """Try the patterns whose words the line holds."""
        text = normal.line_text(piece.text[span[0] : span[1]])
        key = text.encode()
        if key in self._empty or self._count_again(key):
            return
        meant = False
        codes: list[str] = []
        for needle in _each_once(needles):
            if self._tries[needle.pattern] > _MOST_TRIES:
                continue
            self._tries[needle.pattern] += 1
            match = patterns.compiled(needle.pattern).search(text)
            if match is None:
                continue
            meant = True
            if needle.case is None:
                place = where()
                self.found.facts.setdefault(needle.fact, Fact(match["value"].strip(), f"{place.source}:{place.line}"))
            elif self._hit(needle.case, match.groupdict(), piece, span, where):
                codes.append(needle.case.code)
        if meant:
            if len(self._meant) < _MOST_FORMS:
                self._meant[key] = tuple(codes)
            return
        self._remember(key)
        low = key.lower()
        if any(word in low for word in BAD):
            self._suspect(low, where())

    def _count_again(self, key: bytes) -> bool:
        """Whether the line, word for word, was seen and its cases have all the evidence that is kept."""
        codes = self._meant.get(key, ())
        if not codes or any(self.found.times[code] < _MOST_HITS for code in codes):
            return False
        self.found.times.update(codes)
        return True

    def _hit(
        self,
        case: Case,
        groups: Mapping[str, str | None],
        piece: Piece,
        span: tuple[int, int],
        where: Callable[[], Evidence],
    ) -> bool:
        """Keep what was found; False where the lines around do not bear it out."""
        if self.found.times[case.code] >= _MOST_HITS:
            self.found.times[case.code] += 1
            return True
        values = {name: value for name, value in groups.items() if value}
        if case.near or case.not_near or case.also:
            self._looked[case.code] += 1
            more = _near(case, piece.around(*span)) if self._looked[case.code] <= _MOST_HITS else None
            if more is None:
                return False
            values = {**more, **values}
        if case.derive:
            values = {**values, **derive.KNOWN[case.derive](values)}
        self.found.times[case.code] += 1
        self.found.hits.append(Hit(case.code, where(), values))
        return True


def _each_once(needles: tuple[Needle, ...]) -> Iterator[Needle]:
    """A pattern with several words may have been found by each of them."""
    seen = set()
    for needle in needles:
        key = (needle.pattern, needle.fact, needle.case.code if needle.case else "")
        if key not in seen:
            seen.add(key)
            yield needle


def _near(case: Case, around: str) -> dict[str, str] | None:
    """The values of ``near`` and ``also``; None where a ``near`` is missing or a ``not_near`` is there."""
    values: dict[str, str] = {}
    for pattern in (*case.near, *case.also):
        match = patterns.compiled(pattern, many_lines=True).search(around)
        if match is None and pattern in case.near:
            return None
        values.update({name: value for name, value in (match.groupdict() if match else {}).items() if value})
    if any(patterns.compiled(pattern, many_lines=True).search(around) for pattern in case.not_near):
        return None
    return values
