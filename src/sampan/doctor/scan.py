"""Reads a text once, in pieces, and gives the places where a case's pattern stands.

A hundred megabytes take a second or two on one core. Each piece's vocabulary (its distinct words) tells which of
the words that cases need can be there at all; only those are searched, by plain substring search; a line of a form
that was seen and meant nothing is not looked at again; only the rest meets regular expressions. Memory is bounded by
the size of a piece and of the table of seen forms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import BinaryIO

from sampan.doctor import derive, knowledge, normal, patterns
from sampan.doctor.conditions import Fact
from sampan.doctor.knowledge import Anchor, Needle
from sampan.doctor.model import Case, Evidence, Hit

PIECE = 1 << 20
CONTEXT = 6 << 10  # bytes before and after a hit in which ``near`` is looked for
HALF_LINE = 1000  # bytes on each side of a word that are looked at, should a line be longer
_LONGEST_SHOWN = 400
_MOST_HITS = 200  # of one case that are kept with their values; the rest is only counted
_MOST_FORMS = 200_000
_MANY, _PART = 60, 24 << 10  # more anchors than this are sorted out again, part by part
_MOST_TRIES = 50_000  # of one pattern: beyond that, a text is made to slow us down
_DIGITS = b"0123456789"
_ASCII = bytes(byte for byte in range(128) if byte != 10)
#: ASCII letters in lower case; the rest parts words
_LETTERS = bytes(byte | 32 if chr(byte & ~32) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" else 32 for byte in range(256))


@dataclass
class Scanned:
    """What one or several texts gave."""

    hits: list[Hit] = field(default_factory=list)
    times: Counter[str] = field(default_factory=Counter)
    facts: dict[str, Fact] = field(default_factory=dict)
    suspicious: list[Evidence] = field(default_factory=list)
    lines: int = 0
    size: int = 0


@dataclass(frozen=True)
class _Piece:
    """A part of the text in its plain form; ``raw`` has the same lines. Lines that start in [start, end) are ours."""

    raw: bytes
    raw_start: int
    text: bytes
    start: int
    end: int
    first_line: int

    @cached_property
    def lines(self) -> list[bytes]:
        """Our lines and those below, as they came."""
        return self.raw[self.raw_start :].split(b"\n")

    def evidence(self, source: str, line: int) -> Evidence:
        """The exact line, its colours taken out, cut where it is too long to show."""
        number = line - self.first_line
        raw = self.lines[number] if number < len(self.lines) else b""
        text = normal.without_colour(raw).decode("utf-8", "replace").strip("\r\n")
        return Evidence(source, line, text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


class Scanner:
    """One scanner may read several texts; forms that meant nothing are remembered across them."""

    def __init__(self) -> None:
        self._anchors = _anchors()
        self._empty: set[bytes] = set()
        self._meant: dict[bytes, tuple[str, ...]] = {}
        self._tries: Counter[str] = Counter()
        self._looked: Counter[str] = Counter()
        self.found = Scanned()

    def read(self, stream: BinaryIO, source: str, *, keep: Callable[[bytes], None] | None = None) -> None:
        """Scan a stream to its end. ``keep`` receives the decoded bytes as they come."""
        line = 1
        before = b""
        rest = b""
        for block, last in _blocks(stream):
            self.found.size += len(block)
            if keep:
                keep(block)
            raw = before + rest + block
            piece = _piece(raw, len(before), line, last)
            self._piece(piece, source)
            cut = _end_of_ours(raw, len(before), last)
            line += raw.count(b"\n", len(before), cut)
            before, rest = raw[max(0, cut - CONTEXT) : cut], raw[cut:]
        self.found.lines += line - 1 + bool(before and not before.endswith(b"\n"))

    def _piece(self, piece: _Piece, source: str) -> None:
        lower = piece.text.lower()
        candidates = _candidates(lower, piece, self._anchors)
        line, position = piece.first_line, piece.start
        for start in sorted(candidates):
            end, needles = candidates[start]
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
            for anchor in self._anchors:
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
        self, piece: _Piece, span: tuple[int, int], needles: tuple[Needle, ...], where: Callable[[], Evidence]
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
        if any(word in low for word in _BAD):
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
        piece: _Piece,
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
            more = _near(case, _around(piece, *span)) if self._looked[case.code] <= _MOST_HITS else None
            if more is None:
                return False
            values = {**more, **values}
        if case.derive:
            values = {**values, **derive.KNOWN[case.derive](values)}
        self.found.times[case.code] += 1
        self.found.hits.append(Hit(case.code, where(), values))
        return True


@cache
def _anchors() -> tuple[Anchor, ...]:
    """Of the cases, of what looks bad, and of what programs say in Chinese."""
    return (*knowledge.index(), *(knowledge.anchor(word, ()) for word in (*_BAD, *normal.phrases())))


def _each_once(needles: tuple[Needle, ...]) -> Iterator[Needle]:
    """A pattern with several words may have been found by each of them."""
    seen = set()
    for needle in needles:
        key = (needle.pattern, needle.fact, needle.case.code if needle.case else "")
        if key not in seen:
            seen.add(key)
            yield needle


def _blocks(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """UTF-8 blocks, each with whether it is the last."""
    block = stream.read(PIECE)
    decode = normal.decoder(block[: 64 << 10])
    while True:
        following = stream.read(PIECE) if block else b""
        yield (decode.decode(block, not following).encode() if decode else block), not following
        if not following:
            return
        block = following


def _end_of_ours(raw: bytes, start: int, last: bool) -> int:
    """Up to where lines are judged now; the rest waits, so that what stands below a hit is there."""
    if last:
        return len(raw)
    cut = raw.rfind(b"\n", start, max(start, len(raw) - CONTEXT))
    return cut + 1 if cut >= 0 else max(start, len(raw) - CONTEXT)


def _piece(raw: bytes, start: int, line: int, last: bool) -> _Piece:
    """Plain form of the three parts one by one, so that their borders are known."""
    end = _end_of_ours(raw, start, last)
    before, ours, after = (normal.plain(part) for part in (raw[:start], raw[start:end], raw[end:]))
    first = len(before)
    return _Piece(raw, start, before + ours + after, first, first + len(ours), line)


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
    left = {anchor.other.decode(): anchor for anchor in _anchors() if anchor.other}
    found = []
    while left:
        counts = Counter(pair for word in left for pair in {word[at : at + 2] for at in range(max(1, len(word) - 1))})
        pair = counts.most_common(1)[0][0]
        found.append((pair.encode(), tuple(anchor for word, anchor in left.items() if pair in word)))
        left = {word: anchor for word, anchor in left.items() if pair not in word}
    return tuple(found)


def _candidates(
    lower: bytes, piece: _Piece, anchors: tuple[Anchor, ...]
) -> dict[int, tuple[int, tuple[Needle, ...]]]:
    """Start of each line that holds an anchor's word -> its end and the needles to try."""
    found: dict[int, tuple[int, tuple[Needle, ...]]] = {}
    for first, last, possible in _searches(lower, piece, anchors):
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


def _searches(lower: bytes, piece: _Piece, anchors: tuple[Anchor, ...]) -> Iterator[tuple[int, int, list[Anchor]]]:
    """What to search where: the whole piece, or parts of it with fewer anchors each, should there be many."""
    possible = _possible(lower[piece.start : piece.end + HALF_LINE], anchors)
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


def _around(piece: _Piece, start: int, end: int) -> str:
    """The text around a hit."""
    return piece.text[max(0, start - CONTEXT) : end + CONTEXT].decode("utf-8", "replace")


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


_BAD = (b"error:", b"fatal", b"traceback (most", b"panic:", b"assert", b"exception:")
_HARMLESS = (b" 0 error", b"no error", b"0 failed", b"werror", b"non-fatal")
