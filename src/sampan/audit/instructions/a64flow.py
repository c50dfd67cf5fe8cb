"""Which branches of A64 code depend on what the CPU can do."""

from __future__ import annotations

from sampan.audit.instructions.a64code import target26, writes_nothing
from sampan.audit.instructions.a64values import BACK, A64Values
from sampan.audit.instructions.flow import Block

_ONCE = 12  # words after a branch in which a flag that is set once is set


class A64Flow(A64Values):
    """The reader of one file."""

    def tests_cpu(self, block: Block, function: int) -> bool:
        """By the register that the branch looks at: a flag in memory, an answer of a function, a system register."""
        word = self.word(block.last) or 0
        register = word & 31
        at = block.last
        if word >> 24 == 0x54:
            found = self._compared(block.last, function)
            if found is None:
                return False
            register, at = found
        source = self._source(register, at, function, 6)
        return source == "cpu" or (source.startswith("flag") and not self._set_once(block, int(source[4:])))

    def _compared(self, branch: int, low: int) -> tuple[int, int] | None:
        """(register, address) of the last instruction that sets the flags."""
        for at in range(branch - 4, max(low, branch - 4 * BACK) - 4, -4):
            word = self.word(at) or 0
            if word >> 24 & 0x7F in (0x6B, 0x71, 0x6A, 0x72):  # subs, ands; cmp, cmn, tst are these
                return word >> 5 & 31, at
            if word >> 26 == 0x25:
                return None
        return None

    def _source(self, register: int, before: int, low: int, depth: int) -> str:
        """Where a value comes from: ``flag<address>`` (a global variable), ``cpu`` or nothing known."""
        if not depth:
            return ""
        for at in range(before - 4, max(low, before - 4 * BACK) - 4, -4):
            word = self.word(at) or 0
            if word >> 26 == 0x25:
                return "cpu" if register == 0 and self.answers(target26(word, at)) else ""
            if word & 31 != register or writes_nothing(word):
                continue
            return self._origin(word, at, low, depth)
        return ""

    def _origin(self, word: int, at: int, low: int, depth: int) -> str:
        base = word >> 5 & 31
        if word & 0xFFF00000 == 0xD5300000:
            return "cpu"
        if word & 0x3F400000 == 0x39400000:  # a load with an unsigned offset
            page = self.value(base, at, low)
            return f"flag{page + ((word >> 10 & 0xFFF) << (word >> 30))}" if page else ""
        if word >> 24 & 0x1F in (0x12, 0x13, 0x0A, 0x0B, 0x11):  # logic, bit fields, move, add
            moved = word >> 16 & 31 if word & 0x7FE0FFE0 == 0x2A0003E0 else base
            if moved == 31:
                return "cpu"  # zero: decided when it was built, as in zig's outline helpers
            return self._source(moved, at, low, depth - 1)
        return ""

    def answers(self, target: int) -> bool:
        """Whether a function says what the CPU can do: by its name, or because it only reads a flag or asks."""
        slot = self.import_of(target)
        if slot is not None:
            name = self.imports.name(slot)
            inside = self.imports.target(slot)
            return self.knowledge.asks(name) or (inside > 0 and inside != target and self._is_probe(inside))
        return self._is_probe(target)

    def _is_probe(self, start: int) -> bool:
        asks = reads = calls = False
        for at in range(start, start + 4 * BACK, 4):
            word = self.word(at) or 0
            asks = asks or word & 0xFFFF0000 == 0xD5380000
            reads = reads or (word & 0x3F400000 == 0x39400000 and self.value(word >> 5 & 31, at, start) > 0)
            if word >> 26 == 0x25:
                slot = self.import_of(target26(word, at))
                asks = asks or (slot is not None and self.knowledge.asks(self.imports.name(slot)))
                calls = True
            if word & 0xFFFFFC1F == 0xD65F0000:
                return asks or (reads and not calls)
        return asks

    def _set_once(self, block: Block, flag: int) -> bool:
        """A flag that the code sets itself right after the branch keeps a constructor from running twice."""
        for start in (block.end, block.target or 0):
            for at in range(start, start + 4 * _ONCE, 4):
                word = self.word(at) or 0
                if word & 0xFFFFFC1F == 0xD65F0000:  # what follows is another function
                    break
                if word & 0x3F400000 == 0x39000000:
                    page = self.value(word >> 5 & 31, at, block.start - 4 * BACK)
                    if page and page + ((word >> 10 & 0xFFF) << (word >> 30)) == flag:
                        return True
        return False
