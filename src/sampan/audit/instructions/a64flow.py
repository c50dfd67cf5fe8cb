"""Control flow of A64 code. Encodings: Arm ARM (DDI 0487), C4.1, "Branches, Exception Generating and System"."""

from __future__ import annotations

from sampan.audit.instructions import flow
from sampan.audit.instructions.binary import Binary, Span
from sampan.audit.instructions.flow import Block
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import Knowledge

_MAX_BLOCK = 4096  # words
_BACK = 24  # words that are looked at before a branch, and in a function that answers a question
_ONCE = 12  # words after a branch in which a flag that is set once is set
_BRANCHES = frozenset((*range(0x14, 0x18), *range(0x94, 0x98), 0x34, 0x35, 0xB4, 0xB5, 0x36, 0x37, 0xB6, 0xB7, 0x54,
                       0xD4, 0xD6, 0xD7, 0x00))  # fmt: skip


class A64Flow:
    """The reader of one file."""

    def __init__(self, binary: Binary, imports: Imports, knowledge: Knowledge) -> None:
        self.binary = binary
        self.imports = imports
        self.knowledge = knowledge
        self._span = Span(0, 0, 0)

    def word(self, address: int) -> int | None:
        """The instruction at ``address``, None outside of code."""
        if not self._span.start <= address < self._span.end - 3:
            span = self.binary.span_at(address)
            if span is None or address + 4 > span.end:
                return None
            self._span = span
        offset = address - self._span.start + self._span.offset
        return int.from_bytes(self.binary.data[offset : offset + 4], "little")

    def block(self, start: int) -> Block | None:
        """Up to the next branch."""
        for at in range(start, start + 4 * _MAX_BLOCK, 4):
            word = self.word(at) if not at & 3 else None
            if word is None:
                return None
            if word >> 24 in _BRANCHES:
                found = _branch(word, at, start)
                if found:
                    return found
        return None

    def import_of(self, target: int) -> int | None:
        """``adrp x16, page; ldr x17, [x16, #offset]``, perhaps after ``bti c``."""
        if self.word(target) == 0xD503245F:
            target += 4
        first, second = self.word(target), self.word(target + 4)
        if first is None or second is None or first & 0x9F00001F != 0x90000010 or second & 0xFFC003FF != 0xF9400211:
            return None
        return _page(first, target) + (second >> 10 & 0xFFF) * 8

    def addresses(self, block: Block) -> tuple[int, ...]:
        """What ``adr``, ``adrp`` with ``add`` and ``adrp`` with ``ldr`` lead to."""
        found = []
        for at in range(block.start, block.end, 4):
            word = self.word(at) or 0
            if word & 0x9F000000 == 0x10000000:
                found.append(at + _immediate(word))
            elif word & 0xFFC00000 == 0x91000000:
                found.append(self._value(word >> 5 & 31, at, block.start) + (word >> 10 & 0xFFF))
            elif word & 0xFFC00000 == 0xF9400000:
                slot = self._value(word >> 5 & 31, at, block.start)
                found.append(self.imports.target(slot + (word >> 10 & 0xFFF) * 8) if slot else 0)
        return tuple(address for address in found if address and self.binary.span_at(address))

    def _value(self, register: int, before: int, low: int) -> int:
        """What ``adrp``, or ``adrp`` with ``add`` or with a load of an address, has put into the register; else 0."""
        for at in range(before - 4, max(low, before - 4 * _BACK) - 4, -4):
            word = self.word(at) or 0
            if word >> 24 in _BRANCHES and _branch(word, at, at):
                if word >> 26 == 0x25:
                    return 0  # a call may change it
                continue
            if word & 31 != register or _writes_nothing(word):
                continue
            if word & 0x9F000000 == 0x90000000:
                return _page(word, at)
            base = word >> 5 & 31
            if word & 0xFFC00000 == 0x91000000:
                page = self._value(base, at, low)
                return page + (word >> 10 & 0xFFF) if page else 0
            if word & 0xFFC00000 == 0xF9400000:
                page = self._value(base, at, low)
                slot = page + (word >> 10 & 0xFFF) * 8
                return (self.imports.target(slot) or slot) if page else 0
            return 0
        return 0

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
        for at in range(branch - 4, max(low, branch - 4 * _BACK) - 4, -4):
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
        for at in range(before - 4, max(low, before - 4 * _BACK) - 4, -4):
            word = self.word(at) or 0
            if word >> 26 == 0x25:
                return "cpu" if register == 0 and self.answers(_target26(word, at)) else ""
            if word & 31 != register or _writes_nothing(word):
                continue
            return self._written_by(word, at, low, depth)
        return ""

    def _written_by(self, word: int, at: int, low: int, depth: int) -> str:
        base = word >> 5 & 31
        if word & 0xFFF00000 == 0xD5300000:
            return "cpu"
        if word & 0x3F400000 == 0x39400000:  # a load with an unsigned offset
            page = self._value(base, at, low)
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
        for at in range(start, start + 4 * _BACK, 4):
            word = self.word(at) or 0
            asks = asks or word & 0xFFFF0000 == 0xD5380000
            reads = reads or (word & 0x3F400000 == 0x39400000 and self._value(word >> 5 & 31, at, start) > 0)
            if word >> 26 == 0x25:
                slot = self.import_of(_target26(word, at))
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
                    page = self._value(word >> 5 & 31, at, block.start - 4 * _BACK)
                    if page and page + ((word >> 10 & 0xFFF) << (word >> 30)) == flag:
                        return True
        return False


def _branch(word: int, at: int, start: int) -> Block | None:
    """The block that ends with this word, None where it is no branch."""
    top = word >> 24
    if word >> 26 in (0x05, 0x25):
        return Block(start, at + 4, at, flow.CALL if word >> 31 else flow.JUMP, _target26(word, at))
    if top & 0x7E == 0x34 or (top == 0x54 and not word & 0x10):
        return Block(start, at + 4, at, flow.BRANCH, at + 4 * _signed(word >> 5, 19))
    if top & 0x7E == 0x36:
        return Block(start, at + 4, at, flow.BRANCH, at + 4 * _signed(word >> 5, 14))
    if top in (0xD6, 0xD7):
        return Block(start, at + 4, at, flow.ON if word >> 21 & 7 == 1 else flow.END)
    if word < 0x10000 or word & 0xFFE0001F == 0xD4200000:  # udf, brk
        return Block(start, at + 4, at, flow.END)
    return None


def _writes_nothing(word: int) -> bool:
    """Stores, compares and branches have another meaning in the bits where the result's register stands."""
    top = word >> 24 & 0x3F
    return (word & 0x3B400000 in (0x39000000, 0x38000000)) or top in (0x28, 0x29, 0x2C, 0x2D)


def _target26(word: int, at: int) -> int:
    return at + 4 * _signed(word, 26)


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _immediate(word: int) -> int:
    return _signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)


def _page(word: int, at: int) -> int:
    return (at & ~0xFFF) + (_immediate(word) << 12)
