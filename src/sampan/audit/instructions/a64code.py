"""Single A64 instructions. Encodings: Arm ARM (DDI 0487), C4.1, "Branches, Exception Generating and System"."""

from __future__ import annotations

from sampan.audit.instructions import flow
from sampan.audit.instructions.flow import Block
from sampan.audit.instructions.tables import Pattern
from sampan.audit.instructions.wordflow import signed

BRANCHES = (
    Pattern(0x7C000000, 0x14000000),  # b, bl
    Pattern(0x7E000000, 0x34000000),  # cbz, cbnz
    Pattern(0x7E000000, 0x36000000),  # tbz, tbnz
    Pattern(0xFF000010, 0x54000000),  # b.cond
    Pattern(0xFE000000, 0xD6000000),  # br, blr, ret
    Pattern(0xFFFF0000, 0x00000000),  # udf
    Pattern(0xFFE0001F, 0xD4200000),  # brk
)
_TOPS = frozenset(
    top for top in range(256) for one in BRANCHES if not ((top << 24) ^ one.value) & one.mask & 0xFF << 24
)


def is_branch(word: int) -> bool:
    """Whether the word is one of BRANCHES."""
    return word >> 24 in _TOPS and any(word & one.mask == one.value for one in BRANCHES)


def branch(word: int, at: int, start: int) -> Block:
    """The block from ``start`` that ends with this word at ``at``, one of BRANCHES."""
    top = word >> 24
    if word >> 26 in (0x05, 0x25):
        return Block(start, at + 4, at, flow.CALL if word >> 31 else flow.JUMP, target26(word, at))
    if top & 0x7E == 0x34 or (top == 0x54 and not word & 0x10):
        return Block(start, at + 4, at, flow.BRANCH, at + 4 * signed(word >> 5, 19))
    if top & 0x7E == 0x36:
        return Block(start, at + 4, at, flow.BRANCH, at + 4 * signed(word >> 5, 14))
    if top in (0xD6, 0xD7):
        return Block(start, at + 4, at, flow.ON if word >> 21 & 7 == 1 else flow.END)
    return Block(start, at + 4, at, flow.END)  # udf, brk


def writes_nothing(word: int) -> bool:
    """Stores, compares and branches have another meaning in the bits where the result's register stands."""
    top = word >> 24 & 0x3F
    return (word & 0x3B400000 in (0x39000000, 0x38000000)) or top in (0x28, 0x29, 0x2C, 0x2D)


def target26(word: int, at: int) -> int:
    """Where B or BL leads."""
    return at + 4 * signed(word, 26)


def immediate(word: int) -> int:
    """The number in ADR or ADRP."""
    return signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)


def page(word: int, at: int) -> int:
    """What ADRP at ``at`` gives."""
    return (at & ~0xFFF) + (immediate(word) << 12)
