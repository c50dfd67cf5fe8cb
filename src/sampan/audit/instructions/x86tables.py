"""Which x86-64 instructions need which features, and which bytes can begin one."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from iced_x86 import Code, CpuidFeature, Instruction, Mnemonic

from sampan.audit.instructions import isadata

STRANGER = ("?",)  # bytes that are no instruction
_CODES = 1 << 13  # the decoder has fewer


class Needs:
    """What the kernel calls the features of an instruction. ``known``: by the decoder's code for it, filled as codes
    are met; None where one was not met yet."""

    def __init__(self) -> None:
        data = isadata.read("x86-64")
        self._names = {
            getattr(CpuidFeature, name): kernel
            for name, kernel in data["features"].items()
            if hasattr(CpuidFeature, name)
        }
        self._forgiven = {getattr(Mnemonic, name) for name in data["forgiven"]["mnemonics"]}
        self.known: list[tuple[str, ...] | None] = [None] * _CODES
        self.known[Code.INVALID] = STRANGER

    def learn(self, instruction: Instruction) -> tuple[str, ...]:
        """Kernel names, empty for what every x86-64 CPU has."""
        found = (self._names.get(feature) for feature in instruction.cpuid_features())
        names = () if instruction.mnemonic in self._forgiven else tuple(sorted({name for name in found if name}))
        self.known[instruction.code] = names
        return names


@cache
def needs() -> Needs:
    """One for the process."""
    return Needs()


_LEADS = (0x0F, 0x62, 0xC4, 0xC5)
_VEX_MAP1 = (*range(0x10, 0x18), *range(0x28, 0x30), *range(0x41, 0x4C), *range(0x50, 0x80), *range(0x90, 0x94),
             0x98, 0x99, 0xAE, 0xC2, 0xC4, 0xC5, 0xC6, *range(0xD0, 0x100))  # fmt: skip
_LONG = (0x38, 0x3A)  # 0F 38, 0F 3A: all of SSSE3, SSE4, AES, SHA, MOVBE, ADX
_REPEATED = (0x12, 0x16, 0x7C, 0xB8, 0xBD, 0xD0, 0xF0, 0x2B, 0x78, 0x79)  # F2/F3 0F: SSE3, POPCNT, LZCNT, SSE4A
_SIZED = (0x7C, 0x7D, 0xD0, 0x78, 0x79)  # 66 0F


def _marks(values: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    marks = np.zeros(256, bool)
    marks[list(values)] = True
    return marks


_IS_LEAD, _IS_MAP1, _IS_LONG = _marks(_LEADS), _marks(_VEX_MAP1), _marks(_LONG)
_IS_REPEATED, _IS_SIZED = _marks(_REPEATED), _marks(_SIZED)


def candidates(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Positions at which an instruction of a listed feature may stand; many are none, but every one is among them.

    Source: Intel SDM, volume 2, 2.3 (VEX), 2.7 (EVEX), appendix A.
    """
    at = np.flatnonzero(_IS_LEAD[data[: max(0, len(data) - 2)]])
    lead, second, third = data[at], data[at + 1], data[at + 2]
    keep = (lead == 0xC5) & _IS_MAP1[third]
    keep |= (lead == 0xC4) & ((second & 0x1F) - 1 < 3)
    keep |= (lead == 0x8F) & ((second & 0x1F) > 7)
    keep |= (lead == 0x62) & (second & 0x08 == 0) & (second & 7 > 0) & (third & 4 > 0)
    first, before = data[np.maximum(at - 1, 0)], data[np.maximum(at - 2, 0)]
    extended = first & 0xF0 == 0x40  # REX stands between the prefix and 0F
    prefix = np.where(extended, before, first)
    short = (_IS_REPEATED[second] & ((prefix == 0xF2) | (prefix == 0xF3))) | (_IS_SIZED[second] & (prefix == 0x66))
    short |= (second == 0xC7) & extended & (first & 8 > 0)  # CMPXCHG16B
    keep |= (lead == 0x0F) & (_IS_LONG[second] | short)
    found: npt.NDArray[np.int64] = at[keep]
    return found
