"""The layouts of an ELF file's tables as numpy records. Source: ELF gABI, chapters 4 and 5.

Only those of 64-bit little-endian files, which all targets are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.int64]
Records: TypeAlias = npt.NDArray[np.void]

HEADER = np.dtype("16B, <u2, <u2, <u4, <u8, <u8, <u8, <u4, <u2, <u2, <u2, <u2, <u2, <u2")
SEGMENT = np.dtype(
    {
        "names": ["kind", "flags", "offset", "vaddr", "size", "memory"],
        "formats": ["<u4", "<u4", "<u8", "<u8", "<u8", "<u8"],
        "offsets": [0, 4, 8, 16, 32, 40],
        "itemsize": 56,
    }
)
SECTION = np.dtype(
    {
        "names": ["name", "kind", "flags", "vaddr", "offset", "size", "link"],
        "formats": ["<u4", "<u4", "<u8", "<u8", "<u8", "<u8", "<u4"],
        "offsets": [0, 4, 8, 16, 24, 32, 40],
        "itemsize": 64,
    }
)
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("index", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
PT_LOAD, PT_DYNAMIC, EH_FRAME_HDR = 1, 2, 0x6474E550
PROGBITS, SYMTAB, RELA, DYNSYM = 1, 2, 4, 11
INIT_ARRAY, PREINIT_ARRAY = 14, 16  # SHT_INIT_ARRAY, SHT_PREINIT_ARRAY
EXECUTABLE = 4  # SHF_EXECINSTR
MAX_ADDRESS = 1 << 62
MAX_ROWS = 1 << 22  # that are taken of any table: the largest libraries have a million functions


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
