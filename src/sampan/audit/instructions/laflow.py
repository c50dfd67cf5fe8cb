"""Control flow of LoongArch code. Source: LoongArch Reference Manual, volume 1, 2.2.5, "Branch Instructions"."""

from __future__ import annotations

from sampan.audit.instructions import flow
from sampan.audit.instructions.flow import Block
from sampan.audit.instructions.tables import Pattern
from sampan.audit.instructions.wordflow import WordFlow, signed

_BACK = 16
_DEPTH = 6  # loads that lead to one flag


class LoongArchFlow(WordFlow):
    """The reader of one file."""

    BRANCHES = (
        *(Pattern(0xFC000000, opcode << 26) for opcode in range(0x10, 0x1C)),  # beqz ... bgeu
        Pattern(0xFFFF8000, 0x002A0000),  # break
    )

    def ends(self, word: int, at: int, start: int) -> Block:
        """See WordFlow."""
        return _far(self.word(at - 4) or 0, word, at, start) or _branch(word, at, start)

    def tests_cpu(self, block: Block, function: int) -> bool:
        """A branch on a register that a system instruction (CPUCFG) or a flag in memory has filled."""
        word = self.word(block.last) or 0
        register = word >> 5 & 31
        for at in range(block.last - 4, max(function, block.last - 4 * _BACK) - 4, -4):
            before = self.word(at) or 0
            if before >> 26 == 0x15:  # bl: its answer is in $a0
                slot = self.import_of(at + 4 * _offset26(before))
                return register == 4 and slot is not None and self.knowledge.asks(self.imports.name(slot))
            if before & 31 != register or before >> 26 in (0x10, 0x11, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B):
                continue
            if before & 0xFFFFFC00 == 0x00006C00:  # cpucfg
                return True
            if before >> 26 == 0x0A:  # ld.b ... ld.wu: a flag only where its base is the program counter's page
                return self._page(before >> 5 & 31, at, function)
            register = before >> 5 & 31
        return False

    def _page(self, register: int, before: int, low: int, depth: int = _DEPTH) -> bool:
        for at in range(before - 4, max(low, before - 4 * _BACK) - 4, -4):
            word = self.word(at) or 0
            if word & 31 == register:
                deeper = word >> 26 == 0x0A and depth > 0
                return word >> 25 in (0x0D, 0x0E) or (deeper and self._page(word >> 5 & 31, at, low, depth - 1))
        return False

    def import_of(self, target: int) -> int | None:
        """``pcaddu12i $t3, page; ld.d $t3, $t3, offset``."""
        first, second = self.word(target), self.word(target + 4)
        if first is None or second is None or first & 0xFE00001F != 0x1C00000F or second & 0xFFC003FF != 0x28C001EF:
            return None
        return target + (signed(first >> 5, 20) << 12) + signed(second >> 10, 12)

    def addresses(self, block: Block) -> tuple[int, ...]:
        """``pcalau12i`` or ``pcaddu12i`` with ``addi.d`` or a load of an address from a table."""
        found, pages = [], dict[int, int]()
        for at in range(block.start, block.end, 4):
            word = self.word(at) or 0
            base = pages.get(word >> 5 & 31)
            if word >> 25 in (0x0D, 0x0E):
                page = at & ~0xFFF if word >> 25 == 0x0D else at
                pages[word & 31] = page + (signed(word >> 5, 20) << 12)
            elif base is not None and word & 0xFFC00000 == 0x02C00000:
                found.append(base + signed(word >> 10, 12))
            elif base is not None and word & 0xFFC00000 == 0x28C00000:
                found.append(self.imports.target(base + signed(word >> 10, 12)))
        return tuple(address for address in found if self.binary.span_at(address))


def _far(before: int, word: int, at: int, start: int) -> Block | None:
    """``pcaddu18i`` and ``jirl`` together reach every place: the usual call."""
    if word >> 26 != 0x13 or before >> 25 != 0x0F or before & 31 != word >> 5 & 31:
        return None
    target = at - 4 + (signed(before >> 5, 20) << 18) + signed(word >> 10, 16) * 4
    return Block(start, at + 4, at, flow.CALL if word & 31 == 1 else flow.JUMP, target)


def _branch(word: int, at: int, start: int) -> Block:
    opcode = word >> 26
    if opcode in (0x14, 0x15):  # b, bl
        kind = flow.JUMP if opcode == 0x14 else flow.CALL
        return Block(start, at + 4, at, kind, at + 4 * _offset26(word))
    if opcode in (0x10, 0x11, 0x12):  # beqz, bnez, bceqz, bcnez
        offset = signed((word & 31) << 16 | word >> 10 & 0xFFFF, 21)
        return Block(start, at + 4, at, flow.BRANCH, at + 4 * offset)
    if 0x16 <= opcode <= 0x1B:  # beq ... bgeu
        return Block(start, at + 4, at, flow.BRANCH, at + 4 * signed(word >> 10, 16))
    if opcode == 0x13:  # jirl: a call where it keeps the way back
        return Block(start, at + 4, at, flow.ON if word & 31 == 1 else flow.END)
    return Block(start, at + 4, at, flow.END)  # break


def _offset26(word: int) -> int:
    return signed((word & 0x3FF) << 16 | word >> 10 & 0xFFFF, 26)
