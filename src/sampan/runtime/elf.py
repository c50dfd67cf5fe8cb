"""What an ELF file says of itself: its name, what it needs, what versions it offers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection


@dataclass(frozen=True)
class Elf:
    """``versions`` are the symbol versions defined by the file (``GLIBC_2.36``, ``GLIBCXX_3.4.30``…)."""

    soname: str | None
    needed: tuple[str, ...]
    versions: tuple[str, ...]


def read_elf(path: Path) -> Elf | None:
    """Read one file; None where it is not ELF."""
    with path.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return None
        try:
            elf = ELFFile(stream)
            soname, needed = _dynamic(elf)
            return Elf(soname, needed, _versions(elf))
        except ELFError:
            return None


def _dynamic(elf: ELFFile) -> tuple[str | None, tuple[str, ...]]:
    soname, needed = None, []
    section = elf.get_section_by_name(".dynamic")
    if isinstance(section, DynamicSection):
        for tag in section.iter_tags():
            text = str(getattr(tag, tag.entry.d_tag.removeprefix("DT_").lower(), ""))  # pyelftools sets it by name
            if tag.entry.d_tag == "DT_NEEDED":
                needed.append(text)
            elif tag.entry.d_tag == "DT_SONAME":
                soname = text
    return soname, tuple(needed)


def _versions(elf: ELFFile) -> tuple[str, ...]:
    section = elf.get_section_by_name(".gnu.version_d")
    if not isinstance(section, GNUVerDefSection):
        return ()
    return tuple(str(next(names).name) for _, names in section.iter_versions())


def highest(versions: tuple[str, ...], prefix: str) -> str | None:
    """The highest ``<prefix>_1.2.3`` as ``1.2.3``."""
    numbers = [match[1] for name in versions if (match := re.fullmatch(rf"{prefix}_([0-9.]+)", name))]
    return max(numbers, key=lambda text: tuple(map(int, text.split("."))), default=None)
