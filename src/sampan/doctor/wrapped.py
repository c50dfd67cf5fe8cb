"""Texts that a terminal or a mail wrapped: lines put together again, each knowing where it began.

Two views, only for texts small enough to have been pasted. *Hard*: lines that are as wide as the terminal go on
in the next one, even inside of a word. *Soft*: a line and the next one or two, joined by a blank.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from sampan.doctor import normal

LARGEST = 1 << 20
_NARROW, _WIDE = 38, 260
_SOFT_LINES = 3
_SOFT_MOST = 4000  # lines


@dataclass(frozen=True)
class Joined:
    """``line``: number of the first of the lines that were joined, ``count`` of them."""

    line: int
    count: int
    text: str


def hard(raw: bytes) -> tuple[Joined, ...]:
    """All lines, those that a terminal of fixed width cut whole again; nothing where it cut none."""
    lines = _lines(raw)
    widths = [_width(line) for line in lines]
    width = max(widths, default=0)
    if not _NARROW <= width <= _WIDE:
        return ()
    found: list[Joined] = []
    start = 0
    for index in range(len(lines)):
        goes_on = widths[index] >= width - 1 and index + 1 < len(lines) and bool(lines[index + 1].strip())
        if goes_on and index - start < 40:
            continue
        parts = [lines[start], *(line.lstrip(" \t\u3000") for line in lines[start + 1 : index + 1])]
        found.append(Joined(start + 1, index - start + 1, "".join(parts)))
        start = index + 1
    return tuple(found) if any(one.count > 1 for one in found) else ()


def soft(raw: bytes) -> tuple[Joined, ...]:
    """Each line with the one or two below it."""
    return tuple(_soft(_lines(raw)[:_SOFT_MOST]))


def _soft(lines: list[str]) -> Iterator[Joined]:
    for count in range(2, _SOFT_LINES + 1):
        for index in range(len(lines) - count + 1):
            part = [line.strip() for line in lines[index : index + count]]
            if all(part) and max(map(len, part)) <= _WIDE:
                yield Joined(index + 1, count, " ".join(part))


def _lines(raw: bytes) -> list[str]:
    text = normal.plain(raw).decode("utf-8", "replace")
    return [line.rstrip("\r\n") for line in text.split("\n")]


def _width(line: str) -> int:
    """Columns on a terminal: Chinese letters take two."""
    if line.isascii():
        return len(line)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)
