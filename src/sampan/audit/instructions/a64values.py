"""Addresses that A64 code computes: ADR, ADRP with ADD, ADRP with a load from a table of addresses."""

from __future__ import annotations

from sampan.audit.instructions.a64code import BRANCHES, branch, immediate, is_branch, page, writes_nothing
from sampan.audit.instructions.flow import Block
from sampan.audit.instructions.wordflow import WordFlow

BACK = 24  # words that are looked at before a branch, and in a function that answers a question
_DEPTH = 6  # instructions that one address is made of


class A64Values(WordFlow):
    """The reader of one file, as far as addresses go."""

    BRANCHES = BRANCHES

    def ends(self, word: int, at: int, start: int) -> Block:
        """See WordFlow."""
        return branch(word, at, start)

    def import_of(self, target: int) -> int | None:
        """``adrp x16, page; ldr x17, [x16, #offset]``, perhaps after ``bti c``."""
        if self.word(target) == 0xD503245F:
            target += 4
        first, second = self.word(target), self.word(target + 4)
        if first is None or second is None or first & 0x9F00001F != 0x90000010 or second & 0xFFC003FF != 0xF9400211:
            return None
        return page(first, target) + (second >> 10 & 0xFFF) * 8

    def addresses(self, block: Block) -> tuple[int, ...]:
        """What ``adr``, ``adrp`` with ``add`` and ``adrp`` with ``ldr`` lead to."""
        found = []
        for at in range(block.start, block.end, 4):
            word = self.word(at) or 0
            if word & 0x9F000000 == 0x10000000:
                found.append(at + immediate(word))
            elif word & 0xFFC00000 == 0x91000000:
                found.append(self.value(word >> 5 & 31, at, block.start) + (word >> 10 & 0xFFF))
            elif word & 0xFFC00000 == 0xF9400000:
                slot = self.value(word >> 5 & 31, at, block.start)
                found.append(self.imports.target(slot + (word >> 10 & 0xFFF) * 8) if slot else 0)
        return tuple(address for address in found if address and self.binary.span_at(address))

    def value(self, register: int, before: int, low: int, depth: int = _DEPTH) -> int:
        """What ``adrp``, or ``adrp`` with ``add`` or with a load of an address, has put into the register; else 0."""
        for at in range(before - 4, max(low, before - 4 * BACK) - 4, -4):
            word = self.word(at) or 0
            if is_branch(word):
                if word >> 26 == 0x25:
                    return 0  # a call may change it
                continue
            if word & 31 != register or writes_nothing(word):
                continue
            return self._written(word, at, low, depth)
        return 0

    def _written(self, word: int, at: int, low: int, depth: int) -> int:
        """What the instruction at ``at`` puts into its register, as far as it is an address."""
        if word & 0x9F000000 == 0x90000000:
            return page(word, at)
        kind = word & 0xFFC00000
        base = self.value(word >> 5 & 31, at, low, depth - 1) if depth and kind in (0x91000000, 0xF9400000) else 0
        if not base:
            return 0
        if kind == 0x91000000:
            return base + (word >> 10 & 0xFFF)
        slot = base + (word >> 10 & 0xFFF) * 8
        return self.imports.target(slot) or slot
