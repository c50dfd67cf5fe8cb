"""Symbol versions of one file: which it wants of whom, for which symbols, and which it gives.

Format: the "Symbol Versioning" chapter of the Linux Standard Base, Core specification 5.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from sampan.audit.facts import VersionNeed
from sampan.audit.image import Broken, Image

_MAX_VERSIONS = 32767  # a version index has 15 bits
_MAX_SYMBOLS = 1 << 18  # names only explain a finding: those of larger tables are left out, their versions are not
_INDEX_MASK = 0x7FFF
_WEAK = 0x2  # VER_FLG_WEAK
_BASE = 0x1  # VER_FLG_BASE: the file's own name, not a version
_UNDEFINED = 0  # SHN_UNDEF
_SYMBOL = {64: "IBBHQQ", 32: "IIIBBH"}  # name, …; the section index is field 3 of the first, the last of the second


def needs(image: Image) -> tuple[VersionNeed, ...]:
    """Every version of every library, in the file's order. Raises Broken."""
    wanted = [
        (library, aux.vna_other & _INDEX_MASK, image.string(aux.vna_name), bool(aux.vna_flags & _WEAK))
        for library, aux in _wanted(image)
    ]
    symbols = _symbols(image) if wanted else {}
    return tuple(
        VersionNeed(library, version, weak, tuple(symbols.get(index, ()))) for library, index, version, weak in wanted
    )


def provides(image: Image) -> frozenset[str]:
    """The versions that the file defines. Raises Broken."""
    structs = image.elf.structs
    found = set()
    for verdef, offset in _chain(image, "DT_VERDEF", "DT_VERDEFNUM", structs.Elf_Verdef, "vd_next"):
        if not verdef.vd_flags & _BASE:
            aux = image.parse(structs.Elf_Verdaux, offset + verdef.vd_aux, "a version definition")
            found.add(image.string(aux.vda_name))
    return frozenset(found)


def _wanted(image: Image) -> Iterator[tuple[str, Any]]:
    structs, total = image.elf.structs, 0
    for verneed, start in _chain(image, "DT_VERNEED", "DT_VERNEEDNUM", structs.Elf_Verneed, "vn_next"):
        library, offset = image.string(verneed.vn_file), start + verneed.vn_aux
        for _ in range(verneed.vn_cnt):
            total += 1
            if total > _MAX_VERSIONS:
                raise Broken("the version table has no end")
            aux = image.parse(structs.Elf_Vernaux, offset, "a wanted version")
            yield library, aux
            if not aux.vna_next:
                break
            offset += aux.vna_next


def _chain(image: Image, address: str, number: str, layout: Any, following: str) -> Iterator[tuple[Any, int]]:
    """The entries of a table linked by relative offsets, at most as many as it claims and as can exist."""
    if not image.value(address):
        return
    offset = image.offset_of(image.value(address), "the version table")
    count = image.value(number)
    if count > _MAX_VERSIONS:
        raise Broken(f"a version table of {count} entries")
    for _ in range(count):
        entry = image.parse(layout, offset, "the version table")
        yield entry, offset
        if not entry[following]:
            return
        offset += entry[following]


def _symbols(image: Image) -> dict[int, list[str]]:
    """Names of undefined symbols by version index."""
    count = _undefined_end(image)
    if not image.value("DT_VERSYM") or not count:
        return {}
    order = "<" if image.elf.little_endian else ">"
    layout = struct.Struct(order + _SYMBOL[image.elf.elfclass])
    start = image.offset_of(image.value("DT_SYMTAB"), "the symbol table")
    image.table(start, count * layout.size, "the symbol table")
    count = min(count, _MAX_SYMBOLS)
    table = image.table(start, count * layout.size, "the symbol table")
    start = image.offset_of(image.value("DT_VERSYM"), "the symbol versions")
    indices = struct.unpack(f"{order}{count}H", image.table(start, count * 2, "the symbol versions"))
    section = 3 if image.elf.elfclass == 64 else 5
    found: dict[int, list[str]] = {}
    for symbol, index in zip(layout.iter_unpack(table), indices, strict=True):
        if index & _INDEX_MASK > 1 and symbol[section] == _UNDEFINED:
            found.setdefault(index & _INDEX_MASK, []).append(image.string(symbol[0]))
    return found


def _undefined_end(image: Image) -> int:
    """How many entries of the symbol table may be undefined.

    The GNU hash table covers defined symbols only, and says where they begin; the older one counts all.
    """
    order = "<" if image.elf.little_endian else ">"
    for tag in ("DT_GNU_HASH", "DT_HASH"):
        if image.value(tag):
            offset = image.offset_of(image.value(tag), "the symbol hash table")
            words = struct.unpack(order + "II", image.table(offset, 8, "the symbol hash table"))
            return int(words[1])  # symoffset of the one, nchain of the other
    return 0
