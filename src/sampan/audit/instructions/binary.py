"""An ELF file's tables as numpy arrays: segments, code, symbols, relocations.

Only 64-bit little-endian files, which all targets are. The file may be hostile: every array is cut to what the file
has, so that the work is at most linear in its size. Layouts: ELF gABI, chapters 4 and 5.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.int64]
Records: TypeAlias = npt.NDArray[np.void]

_HEADER = np.dtype("16B, <u2, <u2, <u4, <u8, <u8, <u8, <u4, <u2, <u2, <u2, <u2, <u2, <u2")
_SEGMENT = np.dtype(
    {
        "names": ["kind", "flags", "offset", "vaddr", "size", "memory"],
        "formats": ["<u4", "<u4", "<u8", "<u8", "<u8", "<u8"],
        "offsets": [0, 4, 8, 16, 32, 40],
        "itemsize": 56,
    }
)
_SECTION = np.dtype(
    {
        "names": ["name", "kind", "flags", "vaddr", "offset", "size", "link"],
        "formats": ["<u4", "<u4", "<u8", "<u8", "<u8", "<u8", "<u4"],
        "offsets": [0, 4, 8, 16, 24, 32, 40],
        "itemsize": 64,
    }
)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("index", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_RELOCATION = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_PT_LOAD, _PT_DYNAMIC, EH_FRAME_HDR = 1, 2, 0x6474E550
_PROGBITS, _SYMTAB, _RELA, _DYNSYM = 1, 2, 4, 11
INIT_ARRAY, PREINIT_ARRAY = 14, 16  # SHT_INIT_ARRAY, SHT_PREINIT_ARRAY
_EXECUTABLE = 4  # SHF_EXECINSTR
_MAX_ADDRESS = 1 << 62
_MAX_NAME = 512
_MAX_SECTIONS = 4096  # of a linked file; object files may have more


@dataclass(frozen=True)
class Span:
    """A run of code: addresses from ``start`` up to ``end``, which lie at ``offset`` in the file."""

    start: int
    end: int
    offset: int


@dataclass(frozen=True)
class Symbols:
    """One symbol table and the file offset and size of its names."""

    table: Records
    names: tuple[int, int]


class Binary:
    """An open file's tables. Addresses are the file's own, before it is loaded."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.view = np.frombuffer(data, dtype=np.uint8)
        header = self.records(_HEADER, 0, 1)
        self.entry = int(header[0][4]) if len(header) else 0
        self.names_section = int(header[0][13]) if len(header) else 0
        fields = header[0] if len(header) else None
        segments = self.records(_SEGMENT, int(fields[5]), int(fields[10])) if fields is not None else header
        self.segments = self._rows(segments)
        count = min(int(fields[12]), _MAX_SECTIONS) if fields is not None else 0
        sections = self.records(_SECTION, int(fields[6]), count) if fields is not None else header
        self.sections = self._rows(sections)
        self.loads = [s for s in self.segments if s["kind"] == _PT_LOAD]

    def records(self, layout: np.dtype[np.void], offset: int, count: int) -> Records:
        """As many of ``count`` records at ``offset`` as the file has."""
        room = (len(self.data) - offset) // layout.itemsize
        count = max(0, min(count, room)) if 0 <= offset <= len(self.data) else 0
        return np.frombuffer(self.data, dtype=layout, count=count, offset=offset if count else 0)

    def close(self) -> None:
        """Let go of the file: a map cannot be closed while arrays look at it."""
        self.__dict__.clear()

    @staticmethod
    def _rows(table: Records) -> list[dict[str, int]]:
        """Rows as plain numbers; one with an address that no program has gives only zeros."""
        names = table.dtype.names or ()
        rows = [{name: int(row[name]) for name in names} for row in table]
        nothing = dict.fromkeys(names, 0)
        return [
            row if max(row[name] for name in names if name != "flags") < _MAX_ADDRESS else nothing for row in rows
        ]

    def offset_of(self, address: int) -> int | None:
        """Where in the file ``address`` is loaded from."""
        for segment in self.loads:
            if 0 <= address - segment["vaddr"] < segment["size"]:
                offset = address - segment["vaddr"] + segment["offset"]
                return offset if offset < len(self.data) else None
        return None

    def word(self, address: int, size: int) -> int | None:
        """The little-endian number of ``size`` bytes that the file has at ``address``."""
        offset = self.offset_of(address)
        if offset is None or offset + size > len(self.data):
            return None
        return int.from_bytes(self.data[offset : offset + size], "little")

    @cached_property
    def code(self) -> tuple[Span, ...]:
        """What can be executed: the sections that say so, else whole segments. In order, without overlap."""
        found = [
            Span(s["vaddr"], s["vaddr"] + s["size"], s["offset"])
            for s in self.sections
            if s["kind"] == _PROGBITS and s["flags"] & _EXECUTABLE and self.offset_of(s["vaddr"]) == s["offset"]
        ]
        if not found:
            found = [Span(s["vaddr"], s["vaddr"] + s["size"], s["offset"]) for s in self.loads if s["flags"] & 1]
        return tuple(self._disjoint(sorted(found, key=lambda span: span.start)))

    def _disjoint(self, spans: list[Span]) -> Iterator[Span]:
        end, left = 0, len(self.data)  # what is mapped many times over is looked at once
        for span in spans:
            last = min(span.end, span.start + min(len(self.data) - span.offset, left), _MAX_ADDRESS)
            if span.start >= end and last > span.start and span.offset >= 0:
                end = last
                left -= last - span.start
                yield Span(span.start, last, span.offset)

    def span_at(self, address: int) -> Span | None:
        """The run of code that ``address`` is in."""
        index = bisect_right(self.code, address, key=lambda span: span.start) - 1
        return self.code[index] if index >= 0 and address < self.code[index].end else None

    def section(self, name: str) -> tuple[int, int]:
        """(address, bytes) of the section of that name, (0, 0) where there is none."""
        rows = self.sections
        names = rows[self.names_section]["offset"] if self.names_section < len(rows) else len(self.data)
        wanted = name.encode() + b"\0"
        for row in rows:
            start = names + row["name"]
            if self.data[start : start + len(wanted)] == wanted:
                return row["vaddr"], row["size"]
        return 0, 0

    @cached_property
    def dynamic(self) -> dict[int, int]:
        """The dynamic table's values by tag number; of several the last."""
        for segment in self.segments:
            if segment["kind"] == _PT_DYNAMIC:
                pair = np.dtype([("tag", "<u8"), ("value", "<u8")])
                table = self.records(pair, segment["offset"], min(segment["size"] // 16, 4096))
                end = np.flatnonzero(table["tag"] == 0)
                return {int(row["tag"]): int(row["value"]) for row in table[: end[0] if len(end) else None]}
        return {}

    @cached_property
    def symbols(self) -> tuple[Symbols, ...]:
        """The symbol tables, the dynamic one first."""
        rows = self.sections
        found = [next((row for row in rows if row["kind"] == kind), None) for kind in (_DYNSYM, _SYMTAB)]
        tables = [
            Symbols(
                self.records(_SYMBOL, row["offset"], row["size"] // 24),
                (rows[row["link"]]["offset"], rows[row["link"]]["size"]),
            )
            for row in found
            if row is not None and row["link"] < len(rows)
        ]
        return tuple(tables) or self._symbols_without_sections()

    def _symbols_without_sections(self) -> tuple[Symbols, ...]:
        """Linkers put the names right after the symbols; nothing else tells how many there are."""
        table, names, size = (self.dynamic.get(tag, 0) for tag in (6, 5, 10))
        start, after = self.offset_of(table), self.offset_of(names)
        if start is None or after is None or after <= start:
            return ()
        return (Symbols(self.records(_SYMBOL, start, (after - start) // 24), (after, size)),)

    def name(self, symbols: Symbols, index: int) -> str:
        """One symbol's name, cut where it is too long."""
        start, size = symbols.names
        at = int(symbols.table["name"][index]) if index < len(symbols.table) else size
        if not 0 <= at < size:
            return ""
        piece = self.data[start + at : start + min(size, at + _MAX_NAME)]
        return piece.partition(b"\0")[0].decode("utf-8", "backslashreplace")

    @cached_property
    def relocations(self) -> Records:
        """Every RELA entry that the loader works off, sorted by the address that it fills."""
        tables = []
        for address, size in ((7, 8), (23, 2)):  # DT_RELA, DT_RELASZ; DT_JMPREL, DT_PLTRELSZ
            offset = self.offset_of(self.dynamic.get(address, -1))
            if offset is not None:
                tables.append(self.records(_RELOCATION, offset, self.dynamic.get(size, 0) // 24))
        if not tables:  # static programs: .rela.iplt
            rows = [row for row in self.sections if row["kind"] == _RELA and row["flags"] & 2]
            tables = [self.records(_RELOCATION, row["offset"], row["size"] // 24) for row in rows]
        table = np.concatenate(tables) if tables else np.empty(0, _RELOCATION)
        return table[np.argsort(table["offset"], kind="stable")]

    def relocation(self, address: int) -> tuple[int, int, int] | None:
        """(kind, symbol's index, addend) of what fills ``address``."""
        if not 0 <= address < _MAX_ADDRESS:
            return None
        index = int(np.searchsorted(self.relocations["offset"], np.uint64(address)))
        if index < len(self.relocations) and int(self.relocations["offset"][index]) == address:
            row = self.relocations[index]
            return int(row["kind"]), int(row["symbol"]), int(row["addend"])
        return None

    def array(self, section: int, tag: int, size_tag: int) -> tuple[int, int]:
        """(address, bytes) of a table of functions, by the dynamic table or else by its section's type."""
        if tag in self.dynamic:
            return self.dynamic[tag], self.dynamic.get(size_tag, 0)
        rows = [row for row in self.sections if row["kind"] == section]
        return (rows[0]["vaddr"], rows[0]["size"]) if rows else (0, 0)
