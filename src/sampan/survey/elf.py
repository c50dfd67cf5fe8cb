"""The few ELF fields that the survey reads. Standard library only: this travels to the target, pyelftools does not.

Source of offsets: System V gABI, chapter 4 (ELF header); machine numbers from the kernel's linux/elf-em.h.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

MACHINES = {
    (62, 2): "x86_64",
    (62, 1): "x86_64-x32",
    (3, 1): "i686",
    (183, 2): "aarch64",
    (40, 1): "armv7l",
    (258, 2): "loongarch64",
    (243, 2): "riscv64",
    (21, 2): "ppc64le",
}


class ElfKind(NamedTuple):
    """What the first 20 bytes say: bits 32 or 64, little-endian or not, and the machine as ``uname -m`` names it."""

    bits: int
    little: bool
    machine: str | None


def kind(head: bytes) -> ElfKind | None:
    """Parse an ELF header's start; None where it is no ELF file or too short."""
    if len(head) < 20 or head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
        return None
    little = head[5] == 1
    number = int.from_bytes(head[18:20], "little" if little else "big")
    machine = MACHINES.get((number, head[4])) if little else None
    return ElfKind(bits=32 * head[4], little=little, machine=machine)


def kind_of(path: Path) -> ElfKind | None:
    """The kind of a file; None where it cannot be read or is no ELF file."""
    try:
        with path.open("rb") as file:
            return kind(file.read(20))
    except OSError:
        return None


def userland(root: Path) -> ElfKind | None:
    """The kind of the programs that run here, from /proc/self/exe, else /bin/sh.

    Never from ``uname``: a 64-bit kernel may carry a 32-bit userland, where a 64-bit program that needs the
    system's own loader cannot start.
    """
    for name in ("proc/self/exe", "bin/sh", "usr/bin/env"):
        found = kind_of(root / name)
        if found is not None:
            return found
    return None


def header(machine: str) -> str:
    """The bytes 4, 5, 18 and 19 of that machine's ELF headers as hexadecimal text, as the survey script has them."""
    number, kind_of_word = next(key for key, name in MACHINES.items() if name == machine)
    return (bytes([kind_of_word, 1]) + number.to_bytes(2, "little")).hex()
