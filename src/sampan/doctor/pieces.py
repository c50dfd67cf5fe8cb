"""A text in pieces of bounded size, each in its plain form, with the way back to the exact lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from sampan.doctor import normal

PIECE = 1 << 20
CONTEXT = 6 << 10  # bytes before and after a hit in which ``near`` is looked for


@dataclass(frozen=True)
class Piece:
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

    def raw_line(self, number: int) -> bytes:
        """A line of ours by its number in the text, as it came."""
        index = number - self.first_line
        return self.lines[index] if index < len(self.lines) else b""


def pieces(stream: BinaryIO, keep: Callable[[bytes], None]) -> Iterator[Piece]:
    """The whole stream; ``keep`` receives it as UTF-8, as it comes."""
    line, before, rest = 1, b"", b""
    for block, last in _blocks(stream):
        keep(block)
        raw = before + rest + block
        cut = _end_of_ours(raw, len(before), last)
        yield _piece(raw, len(before), cut, line)
        line += raw.count(b"\n", len(before), cut)
        before, rest = raw[max(0, cut - CONTEXT) : cut], raw[cut:]


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


def _piece(raw: bytes, start: int, end: int, line: int) -> Piece:
    """Plain form of the three parts one by one, so that their borders are known."""
    before, ours, after = (normal.plain(part) for part in (raw[:start], raw[start:end], raw[end:]))
    first = len(before)
    return Piece(raw, start, before + ours + after, first, first + len(ours), line)
