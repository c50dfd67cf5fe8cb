"""Find the instructions of a 32-bit-word architecture: every word is looked up, in pieces that stay in the cache.

Data in code decodes as instructions, so a find counts only where its neighbours are instructions too: within an
unwind entry's range a few strangers are forgiven (a literal pool), outside of one none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sampan.audit.instructions import tables
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.functions import Functions
from sampan.audit.instructions.layouts import Array, Span
from sampan.audit.windows import forget

Words: TypeAlias = npt.NDArray[np.uint32]
Numbers: TypeAlias = npt.NDArray[np.uint8]

PIECE = 1 << 16  # words
_MAX_FOUND = 1 << 18
_NEAR = 8  # words on each side
_FORGIVEN = 3  # strangers among the neighbours, within unwound code


@dataclass(slots=True)
class Found:
    """How often a function uses a group of instructions, and where first."""

    count: int
    first: int


@dataclass
class Hits:
    """By (function's index, group's number). ``more``: by the group's number alone, where there are too many."""

    found: dict[tuple[int, int], Found] = field(default_factory=dict)
    more: dict[int, Found] = field(default_factory=dict)
    code_bytes: int = 0


def pieces(binary: Binary, span: Span) -> Iterator[tuple[int, Words, int, int]]:
    """(address of the first word, words with neighbours, first and last of them that count)."""
    start = span.start + (-span.start) % 4
    total = (span.end - start) // 4
    offset = span.offset + start - span.start
    words = np.frombuffer(binary.data, "<u4", max(0, min(total, (len(binary.data) - offset) // 4)), offset)
    for first in range(0, len(words), PIECE):
        low, high = max(0, first - _NEAR), min(len(words), first + PIECE + _NEAR)
        yield start + low * 4, words[low:high], first - low, min(first + PIECE, len(words)) - low
        forget(binary.data, offset + low * 4, offset + high * 4)


class Scanner:
    """The finds of one open file."""

    def __init__(self, binary: Binary, functions: Functions, arch: str) -> None:
        self.binary = binary
        self.functions = functions
        self.arch = arch
        self.data = data_ranges(binary)

    def scan(self) -> Hits:
        """Everything in all code."""
        hits = Hits()
        for span in self.binary.code:
            hits.code_bytes += span.end - span.start
            for address, words, low, high in pieces(self.binary, span):
                _collect(hits, self.functions, *self._believed(address, words, low, high))
        return hits

    def within(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """(address, group's number) of what ``scan`` believes between two addresses."""
        span = self.binary.span_at(low)
        if span is None:
            return
        start = low - low % 4
        before = min((start - span.start) // 4, _NEAR)
        count = min((min(high, span.end) - start) // 4 + _NEAR, (span.end - start) // 4) + before
        offset = start - span.start + span.offset - before * 4
        words = np.frombuffer(
            self.binary.data, "<u4", max(0, min(count, (len(self.binary.data) - offset) // 4)), offset
        )
        found = self._believed(start - before * 4, words, before, before + (high - start) // 4)
        yield from zip(found[0].tolist(), found[1].tolist(), strict=True)

    def _believed(self, address: int, words: Words, low: int, high: int) -> tuple[Array, Numbers]:
        """Addresses and numbers of the finds that are code and lie between the positions ``low`` and ``high``."""
        at, numbers = find(words, self.arch)
        strangers = at[numbers == tables.NOT_CODE]
        keep = (numbers != tables.NOT_CODE) & (at >= low) & (at < high)
        at, numbers = at[keep], numbers[keep]
        near = np.searchsorted(strangers, at + _NEAR + 1) - np.searchsorted(strangers, at - _NEAR)
        addresses = at * 4 + address
        keep = near <= np.where(self.functions.covered(addresses), _FORGIVEN, 0)
        if len(self.data[0]):
            block = np.searchsorted(self.data[0], addresses, side="right") - 1
            keep &= (block < 0) | (addresses >= self.data[1][block])
        return addresses[keep], numbers[keep]


def find(words: Words, arch: str) -> tuple[Array, Numbers]:
    """Positions and groups' numbers of all that is not plain; NOT_CODE among them."""
    numbers = tables.lookup(arch).take(words >> np.uint32(tables.KEY_SHIFT))
    at = np.flatnonzero(numbers)
    numbers = numbers[at]
    sure = tables.confirmed(arch, words[at], numbers)
    return at[sure], numbers[sure]


def _collect(hits: Hits, functions: Functions, addresses: Array, numbers: Numbers) -> None:
    if not len(addresses):
        return
    index = np.searchsorted(functions.starts, addresses, side="right") - 1
    keys, firsts, counts = np.unique(index * 256 + numbers, return_index=True, return_counts=True)
    for key, first, count in zip(keys.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        where = key >> 8, key & 255
        if where in hits.found:
            hits.found[where].count += count
        elif len(hits.found) < _MAX_FOUND:
            hits.found[where] = Found(count, int(addresses[first]))
        else:
            hits.more.setdefault(where[1], Found(0, int(addresses[first]))).count += count


def data_ranges(binary: Binary) -> tuple[Array, Array]:
    """(starts, ends) of what mapping symbols call data: from ``$d`` to the next ``$x``.

    Source: ELF for the Arm 64-bit Architecture, "Mapping symbols".
    """
    marks = []
    for symbols in binary.symbols:
        start, size = symbols.names
        local = symbols.table[(symbols.table["info"] == 0) & (symbols.table["index"] != 0)]
        local = local[local["name"].astype(np.int64) + 2 < min(size, len(binary.data) - start)]
        names = local["name"].astype(np.int64) + start
        marked = (binary.view[names] == ord("$")) & np.isin(binary.view[names + 1], (ord("d"), ord("x")))
        data = binary.view[names[marked] + 1] == ord("d")
        marks.append(np.stack((local["value"][marked].astype(np.int64), data.astype(np.int64))))
    table = np.concatenate(marks, axis=1) if marks else np.empty((2, 0), np.int64)
    table = table[:, np.lexsort((-table[1], table[0]))]
    ends = np.append(table[0][1:], np.int64(1 << 62))
    keep = table[1] == 1
    return table[0][keep], ends[keep]
