"""Pointers that the loader fills: which function they lead to, and by what name."""

from __future__ import annotations

from functools import cached_property

from sampan.audit.instructions.binary import Binary

# Relocation kinds by machine: (relative, irelative, those that give a symbol's address).
# Sources: ELF for the Arm 64-bit Architecture; x86-64 psABI, table 4.9; LoongArch ELF psABI.
_KINDS = {
    "aarch64": (1027, 1032, (257, 1025, 1026)),
    "x86_64": (8, 37, (1, 6, 7)),
    "loongarch64": (3, 12, (2, 5)),
}
_IFUNC = 10


class Imports:
    """Of one file. Addresses are 0 where the function is in another file."""

    def __init__(self, binary: Binary, arch: str) -> None:
        self.binary = binary
        self.relative, self.indirect, self.by_symbol = _KINDS[arch]

    def target(self, slot: int) -> int:
        """Where the pointer at ``slot`` leads to within this file."""
        found = self.binary.relocation(slot)
        if found is None:
            return self.binary.word(slot, 8) or 0
        kind, symbol, addend = found
        if kind == self.relative:
            return addend
        table = self.binary.symbols[0].table if self.binary.symbols else None
        if kind in self.by_symbol and table is not None and symbol < len(table) and table["index"][symbol]:
            return 0 if table["info"][symbol] & 15 == _IFUNC else int(table["value"][symbol]) + addend
        return 0

    def name(self, slot: int) -> str:
        """The symbol whose address is put into ``slot``."""
        found = self.binary.relocation(slot)
        if found is None or found[0] not in self.by_symbol or not self.binary.symbols:
            return ""
        return self.binary.name(self.binary.symbols[0], found[1])

    @cached_property
    def resolvers(self) -> tuple[int, ...]:
        """Functions that the loader runs to choose an implementation (IFUNC)."""
        table = self.binary.relocations
        found = table["addend"][table["kind"] == self.indirect].tolist()
        for symbols in self.binary.symbols:
            rows = (symbols.table["info"] & 15 == _IFUNC) & (symbols.table["index"] != 0)
            found += symbols.table["value"][rows].tolist()
        return tuple(sorted({int(address) for address in found}))
