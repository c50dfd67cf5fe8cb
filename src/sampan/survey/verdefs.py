"""Which symbol versions a shared library exports, read from its ELF version definitions.

This is what the loader itself compares (``version `GLIBCXX_3.4.25' not found``); package versions and
``ldd --version`` only hint at it. Standard library only, since it travels to the target.

Source: System V gABI chapters 4 and 5; Linux Standard Base Core, "Symbol Versioning" (Elfxx_Verdef, Elfxx_Verdaux).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sampan.survey.elf import kind

_SHT_GNU_VERDEF = 0x6FFFFFFD
_FLAG_BASE = 1  # the entry that names the file itself


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


def exported(image: bytes) -> tuple[str, ...]:
    """The names of all version definitions, in file order, without the file's own name.

    Empty for a file that defines none. Raises ValueError where the file is no ELF or ends early.
    """
    found = kind(image)
    if found is None:
        raise ValueError("not an ELF file")
    order = "<" if found.little else ">"
    try:
        sections = _sections(image, order, found.bits)
        for section in sections:
            if section.kind == _SHT_GNU_VERDEF:
                return tuple(_definitions(image, order, section, sections[section.link].offset))
    except (struct.error, IndexError) as error:
        raise ValueError("the file ends early") from error
    return ()


def _sections(image: bytes, order: str, bits: int) -> list[_Section]:
    if bits == 64:
        (start,) = struct.unpack_from(order + "Q", image, 40)
        size, count = struct.unpack_from(order + "HH", image, 58)
        form = order + "IIQQQQI"  # name type flags addr offset size link
    else:
        (start,) = struct.unpack_from(order + "I", image, 32)
        size, count = struct.unpack_from(order + "HH", image, 46)
        form = order + "IIIIIII"
    found = []
    for index in range(count):
        _, section, _, _, offset, length, link = struct.unpack_from(form, image, start + index * size)
        found.append(_Section(section, offset, length, link))
    return found


def _definitions(image: bytes, order: str, section: _Section, strings: int) -> list[str]:
    names = []
    at, end = section.offset, section.offset + section.size
    while at < end:
        _, flags, _, _, _, aux, step = struct.unpack_from(order + "HHHHIII", image, at)
        (name,) = struct.unpack_from(order + "I", image, at + aux)
        if not flags & _FLAG_BASE:
            stop = image.index(b"\0", strings + name)
            names.append(image[strings + name : stop].decode("ascii", "replace"))
        if step == 0:
            break
        at += step
    return names


def highest(names: tuple[str, ...], prefix: str) -> str | None:
    """The highest version after ``prefix_`` as text: ``highest(names, "GLIBC")`` gives ``2.28``.

    Names that are no plain numbers (GLIBC_PRIVATE, CXXABI_TM_1) do not count.
    """
    versions = []
    for name in names:
        head, _, rest = name.partition("_")
        parts = rest.split(".")
        if head == prefix and all(part.isdigit() for part in parts):
            versions.append(tuple(int(part) for part in parts))
    return ".".join(str(part) for part in max(versions)) if versions else None
