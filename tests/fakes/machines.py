"""Machines that do not exist: small ELF files with version definitions, and root folders to survey."""

from __future__ import annotations

import struct
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
AARCH64, X86_64, ARM32 = 183, 62, 40


def library(names: list[str], *, machine: int = AARCH64, bits: int = 64, order: str = "<") -> bytes:
    """An ELF file of three sections (none, strings, version definitions) that exports ``names``."""
    strings, offsets = b"\0", []
    for name in ["lib.so.1", *names]:
        offsets.append(len(strings))
        strings += name.encode() + b"\0"
    entries = b""
    for index, offset in enumerate(offsets):
        step = 0 if index == len(offsets) - 1 else 28
        entries += struct.pack(order + "HHHHIII", 1, 1 if index == 0 else 0, index + 1, 1, 0, 20, step)
        entries += struct.pack(order + "II", offset, 0)
    head = 64 if bits == 64 else 52
    form = "IIQQQQIIQQ" if bits == 64 else "IIIIIIIIII"
    size = struct.calcsize(order + form)
    at_strings = head
    at_entries = at_strings + len(strings)
    table = at_entries + len(entries)
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 3, 0, 0, at_strings, len(strings), 0, 0, 1, 0),
        (0, 0x6FFFFFFD, 0, 0, at_entries, len(entries), 1, len(offsets), 4, 0),
    ]
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    word = "Q" if bits == 64 else "I"
    header = ident + struct.pack(
        order + "HHI" + 3 * word + "IHHHHHH", 3, machine, 1, 0, 0, table, 0, head, 0, 0, size, len(rows), 1
    )
    return header + strings + entries + b"".join(struct.pack(order + form, *row) for row in rows)


def auxv(*, page_size: int, hwcap: int = 0, hwcap2: int = 0) -> bytes:
    """The auxiliary vector of a 64-bit process."""
    pairs = [(6, page_size), (16, hwcap), (26, hwcap2), (0, 0)]
    return b"".join(struct.pack("<QQ", *pair) for pair in pairs)


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    """Lay the files below ``root``."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def cpuinfo(name: str) -> str:
    """One recorded /proc/cpuinfo."""
    return (DATA / "cpuinfo" / f"{name}.txt").read_text(encoding="utf-8")
