"""Where functions begin and end, and what they are called.

From unwind entries (LSB 5.0, "Exception Frames": .eh_frame_hdr's search table and the .eh_frame entries it leads to)
and from symbols; assembly without either is found by the calls that lead to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.layouts import EH_FRAME_HDR, Array

_FUNCTION, _IFUNC = 2, 10
_MAX_UNWIND = 1 << 24  # bytes that are read entry by entry
_LONG_ENTRY = 0xFFFFFFFF  # the mark of a 64-bit length, which nobody needs
_TABLE = b"\x01\x1b\x03\x3b"  # version 1; pcrel sdata4; udata4; datarel sdata4: what every linker writes


class Functions:
    """Sorted, disjoint ranges. ``unwound`` are those that an unwind entry covers whole."""

    def __init__(self, binary: Binary) -> None:
        self.binary = binary
        self.unwound = _unwind_ranges(binary)
        self._symbols = _function_symbols(binary)
        self._extra: Array = np.empty(0, np.int64)
        self._lay_out()

    def add(self, starts: Array) -> None:
        """Further starts, such as the targets of calls."""
        self._extra = np.union1d(self._extra, starts)
        self._lay_out()

    def _lay_out(self) -> None:
        starts = np.unique(np.concatenate((self.unwound[0], self._symbols[0], self._extra)))
        spans = self.binary.code
        firsts = np.array([span.start for span in spans], np.int64)
        self.starts = np.unique(np.concatenate((starts, firsts)))
        bounds = np.array([span.end for span in spans], np.int64)
        ends = np.append(self.starts[1:], _MAX)
        if len(bounds):
            within = np.minimum(np.searchsorted(bounds, self.starts, side="right"), len(bounds) - 1)
            ends = np.minimum(ends, bounds[within])
        self.ends = ends
        self._starts = self.starts.tolist()

    def index(self, address: int) -> int:
        """Which function ``address`` is in, -1 for none."""
        return bisect_right(self._starts, address) - 1

    def range(self, index: int) -> tuple[int, int]:
        """(start, end) of a function."""
        return int(self.starts[index]), int(self.ends[index])

    def name(self, address: int) -> str:
        """The nearest symbol at or before ``address`` within its function, ``+offset`` added; else the address."""
        index = self.index(address)
        start = int(self.starts[index]) if index >= 0 else address
        values, tables, rows = self._symbols
        at = int(np.searchsorted(values, address, side="right")) - 1
        if at >= 0 and int(values[at]) >= start:
            symbols = self.binary.symbols[int(tables[at])]
            name = self.binary.name(symbols, int(rows[at]))
            ahead = address - int(values[at])
            return f"{name}+{ahead:#x}" if ahead else name
        return f"{start:#x}+{address - start:#x}" if address > start else f"{start:#x}"

    def covered(self, addresses: Array) -> np.typing.NDArray[np.bool_]:
        """Which addresses an unwind entry covers."""
        starts, ends = self.unwound
        if not len(starts):
            return np.zeros(len(addresses), bool)
        at = np.searchsorted(starts, addresses, side="right") - 1
        return (at >= 0) & (addresses < ends[at])


_MAX = np.int64(1 << 62)


def _unwind_ranges(binary: Binary) -> tuple[Array, Array]:
    """(starts, ends) of all unwind entries, sorted by start."""
    empty = np.empty(0, np.int64)
    for segment in binary.segments:
        offset, vaddr = segment["offset"], segment["vaddr"]
        if segment["kind"] == EH_FRAME_HDR and vaddr < _MAX and binary.data[offset : offset + 4] == _TABLE:
            count = int.from_bytes(binary.data[offset + 8 : offset + 12], "little")
            table = binary.records(np.dtype("<i4, <i4"), offset + 12, count)
            starts = table["f0"].astype(np.int64) + vaddr
            return _with_ends(binary, starts, table["f1"].astype(np.int64) + vaddr)
    entries = np.array(list(_entries(binary)), np.int64).reshape(-1, 2)
    if not len(entries):
        return empty, empty
    order = np.argsort(entries[:, 0], kind="stable")
    return entries[order, 0], entries[order, 0] + entries[order, 1]


def _entries(binary: Binary) -> Iterator[tuple[int, int]]:
    """(start, length) of the entries of .eh_frame one after another: static programs have no search table."""
    address, size = binary.section(".eh_frame")
    offset = binary.offset_of(address)
    if offset is None:
        return
    data = binary.data[offset : min(offset + size, offset + _MAX_UNWIND)]
    at = 0
    while at + 16 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 8], "little")
        if length == 0:
            at += 4  # between the parts of two object files
            continue
        if length < 12 or length == _LONG_ENTRY:
            return
        if kind:  # an entry, not what several have in common
            start = int.from_bytes(data[at + 8 : at + 12], "little", signed=True) + address + at + 8
            count = int.from_bytes(data[at + 12 : at + 16], "little")
            if count and binary.span_at(start):
                yield start, count
        at += length + 4


def _with_ends(binary: Binary, starts: Array, entries: Array) -> tuple[Array, Array]:
    """The length stands 12 bytes into an entry whose addresses are pcrel sdata4; others are left out."""
    offsets = binary.offsets_of(entries)
    sound = (offsets >= 0) & (offsets + 16 <= len(binary.data))
    starts, entries, offsets = starts[sound], entries[sound], offsets[sound]
    fields = binary.view[offsets[:, None] + np.arange(8, 16)].copy().view("<i4").astype(np.int64).reshape(-1, 2)
    sound = (fields[:, 0] + entries + 8 == starts) & (fields[:, 1] > 0)
    order = np.argsort(starts[sound], kind="stable")
    starts = starts[sound][order]
    return starts, starts + fields[:, 1][sound][order]


def _function_symbols(binary: Binary) -> tuple[Array, Array, Array]:
    """(addresses, table's number, row) of every function symbol in code, sorted, one an address."""
    found = []
    for number, symbols in enumerate(binary.symbols):
        kind = symbols.table["info"] & 15
        rows = np.flatnonzero(((kind == _FUNCTION) | (kind == _IFUNC)) & (symbols.table["index"] != 0))
        values = symbols.table["value"][rows].astype(np.int64)
        found.append(np.stack((values, np.full(len(rows), number), rows)))
    table = np.concatenate(found, axis=1) if found else np.empty((3, 0), np.int64)
    table = table[:, binary.in_code(table[0])]
    _, first = np.unique(table[0], return_index=True)
    return table[0][first], table[1][first], table[2][first]
