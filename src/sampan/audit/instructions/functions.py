"""Where functions begin and end, and what they are called.

From unwind entries and from symbols; assembly without either is found by the calls that lead to it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

import numpy as np

from sampan.audit.instructions import unwind
from sampan.audit.instructions.arrays import distinct, first_of_each
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.layouts import Array

Numbers: TypeAlias = np.typing.NDArray[np.uint32]

_FUNCTION, _IFUNC = 2, 10
_PIECE = 1 << 16  # symbols that are looked at together


class Functions:
    """Sorted, disjoint ranges. ``unwound`` are those that an unwind entry covers whole."""

    def __init__(self, binary: Binary) -> None:
        self.binary = binary
        self.unwound = unwind.ranges(binary)
        self._symbols = _function_symbols(binary)
        firsts = np.array([span.start for span in binary.code], np.int64)
        self._lay_out(distinct(np.concatenate((self.unwound[0], self._symbols[0], firsts))))

    def add(self, starts: Array) -> None:
        """Further starts, such as the targets of calls."""
        self._lay_out(distinct(np.concatenate((self.starts, starts))))

    def _lay_out(self, starts: Array) -> None:
        self.starts = starts
        self._starts = memoryview(starts)  # type: ignore[arg-type]  # to be searched without numpy's overhead

    def index(self, address: int) -> int:
        """Which function ``address`` is in, -1 for none."""
        return bisect_right(self._starts, address) - 1

    def range(self, index: int) -> tuple[int, int]:
        """(start, end) of a function."""
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else _MAX
        return start, min(end, self.binary.code_end(start))

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


_MAX = 1 << 62


def _function_symbols(binary: Binary) -> tuple[Array, Numbers, Numbers]:
    """(addresses, table's number, row) of every function symbol in code, sorted, one an address."""
    values, tables, rows = [np.empty(0, np.int64)], [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
    for number, symbols in enumerate(binary.symbols):
        for low in range(0, len(symbols.table), _PIECE):
            piece = symbols.table[low : low + _PIECE]
            kind = piece["info"] & 15
            own = np.flatnonzero(((kind == _FUNCTION) | (kind == _IFUNC)) & (piece["index"] != 0))
            addresses = piece["value"][own].astype(np.int64)
            inside = binary.code.holds(addresses)
            values.append(addresses[inside])
            rows.append((own[inside] + low).astype(np.uint32))
            tables.append(np.full(len(rows[-1]), number, np.uint32))
    found, first = first_of_each(np.concatenate(values))
    return found, np.concatenate(tables)[first], np.concatenate(rows)[first]
