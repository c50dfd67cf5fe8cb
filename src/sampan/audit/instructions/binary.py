"""An ELF file's tables as numpy arrays: what the loader works off, symbols, relocations."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sampan.audit.instructions import layouts
from sampan.audit.instructions.layouts import Records, Symbols
from sampan.audit.instructions.mapped import Mapped

_MAX_NAME = 512  # bytes


class Binary(Mapped):
    """An open file's tables, cut to what the file has."""

    @cached_property
    def dynamic(self) -> dict[int, int]:
        """The dynamic table's values by tag number; of several the last."""
        for segment in self.segments:
            if segment["kind"] == layouts.PT_DYNAMIC:
                pair = np.dtype([("tag", "<u8"), ("value", "<u8")])
                table = self.records(pair, segment["offset"], min(segment["size"] // 16, 4096))
                end = np.flatnonzero(table["tag"] == 0)
                return {int(row["tag"]): int(row["value"]) for row in table[: end[0] if len(end) else None]}
        return {}

    @cached_property
    def symbols(self) -> tuple[Symbols, ...]:
        """The symbol tables, the dynamic one first."""
        rows = self.sections
        found = [
            next((row for row in rows if row["kind"] == kind), None) for kind in (layouts.DYNSYM, layouts.SYMTAB)
        ]
        tables = [
            Symbols(
                self.records(layouts.SYMBOL, row["offset"], row["size"] // 24),
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
        return (Symbols(self.records(layouts.SYMBOL, start, (after - start) // 24), (after, size)),)

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
                tables.append(self.records(layouts.RELOCATION, offset, self.dynamic.get(size, 0) // 24))
        if not tables:  # static programs: .rela.iplt
            rows = [row for row in self.sections if row["kind"] == layouts.RELA and row["flags"] & 2]
            tables = [self.records(layouts.RELOCATION, row["offset"], row["size"] // 24) for row in rows]
        table = np.concatenate(tables) if tables else np.empty(0, layouts.RELOCATION)
        return table[np.argsort(table["offset"], kind="stable")]

    def relocation(self, address: int) -> tuple[int, int, int] | None:
        """(kind, symbol's index, addend) of what fills ``address``."""
        if not 0 <= address < layouts.MAX_ADDRESS:
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
