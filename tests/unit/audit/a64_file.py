"""A static A64 program, written word by word, for tests of what code leads where."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

BASE, HEADERS = 0x400000, 0x1000  # code begins a page into the file
FLAG = BASE + 0x8000  # a variable behind the code
NOP, RET, SDOT, FMOV_HALF, LDADD, NOT_CODE = 0xD503201F, 0xD65F03C0, 0x4E829420, 0x0F00FC00, 0xB8200020, 0x56ABCDEF


def bl(words: int) -> int:
    """Call what stands so many words ahead."""
    return 0x94000000 | words & 0x3FFFFFF


def b(words: int) -> int:
    """Jump so many words ahead."""
    return 0x14000000 | words & 0x3FFFFFF


def cbz(words: int, register: int = 0) -> int:
    """Jump where the register is zero."""
    return 0x34000000 | (words & 0x7FFFF) << 5 | register


def flag_into(register: int, at: int, *, acquire: bool = False) -> tuple[int, int, int]:
    """Load the byte at FLAG; ``at`` is this place's number of words from the start. Three words."""
    page = (FLAG >> 12) - ((BASE + HEADERS + at * 4) >> 12)
    adrp = 0x90000000 | (page & 3) << 29 | (page >> 2 & 0x7FFFF) << 5 | register
    add = 0x91000000 | (FLAG & 0xFFF) << 10 | register << 5 | register
    load = 0x08DFFC00 if acquire else 0x39400000
    return adrp, add, load | register << 5 | register


def store_flag(at: int) -> tuple[int, int]:
    """Set the byte at FLAG. Two words, x1 is used."""
    page = (FLAG >> 12) - ((BASE + HEADERS + at * 4) >> 12)
    adrp = 0x90000000 | (page & 3) << 29 | (page >> 2 & 0x7FFFF) << 5 | 1
    return adrp, 0x39000000 | (FLAG & 0xFFF) << 10 | 1 << 5 | 2


def program(words: Sequence[int], *, machine: int = 183, symbols: Sequence[tuple[str, int, int]] = ()) -> bytes:
    """An ET_EXEC whose entry is the first word. ``symbols``: (name, word, type); ``$d`` and ``$x`` have type 0."""
    code = struct.pack(f"<{len(words)}I", *words)
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in symbols)
    table, at = bytes(24), 1
    for name, word, kind in symbols:
        table += struct.pack("<IBBHQQ", at, kind, 0, 1, BASE + HEADERS + word * 4, 0)
        at += len(name) + 1
    end = HEADERS + len(code)
    end += -end % 8
    sections = [
        (0, 0, 0, 0, 0, 0),
        (1, 6, BASE + HEADERS, HEADERS, len(code), 0),
        (2, 0, 0, end, len(table), 3),
        (3, 0, 0, end + len(table), len(names), 0),
    ]
    table_at = end + len(table) + len(names)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, BASE + HEADERS, 64, table_at, 0, 64, 56, 1, 64, len(sections), 0
    )
    header += struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, HEADERS + len(code), 0x10000, 0x10000)
    headers = b"".join(
        struct.pack("<IIQQQQIIQQ", 0, kind, flags, address, offset, size, link, 0, 8, 0)
        for kind, flags, address, offset, size, link in sections
    )
    return (header.ljust(HEADERS, b"\0") + code).ljust(end, b"\0") + table + names + headers


def write(folder: Path, words: Sequence[int], **more: Sequence[tuple[str, int, int]]) -> Path:
    """The program as a file."""
    path = folder / "program"
    path.write_bytes(program(words, **more))  # type: ignore[arg-type]
    return path
