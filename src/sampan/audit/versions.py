"""Symbol versions of one file: which it wants of whom, for which symbols, and which it gives.

Format: the "Symbol Versioning" chapter of the Linux Standard Base, Core specification 5.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampan.audit.facts import VersionNeed
from sampan.audit.image import Broken, Image

_MAX_VERSIONS = 32767  # a version index has 15 bits
_INDEX_MASK = 0x7FFF
_WEAK = 0x2  # VER_FLG_WEAK
_BASE = 0x1  # VER_FLG_BASE: the file's own name, not a version


@dataclass(frozen=True)
class Want:
    """One wanted version, and the index under which the symbol table speaks of it."""

    library: str
    version: str
    index: int
    weak: bool


def wants(image: Image) -> tuple[Want, ...]:
    """Every version of every library, in the file's order. Raises Broken."""
    return tuple(
        Want(library, image.string(aux.vna_name), aux.vna_other & _INDEX_MASK, bool(aux.vna_flags & _WEAK))
        for library, aux in _wanted(image)
    )


def needs(wanted: Iterable[Want], symbols: Mapping[int, Sequence[str]]) -> tuple[VersionNeed, ...]:
    """Each wanted version with the undefined symbols that are bound to it. ``symbols``: names by index."""
    return tuple(
        VersionNeed(want.library, want.version, want.weak, tuple(symbols.get(want.index, ()))) for want in wanted
    )


def provides(image: Image) -> dict[int, str]:
    """The versions that the file defines, by index. Raises Broken."""
    structs = image.elf.structs
    found = {}
    for verdef, offset in _chain(image, "DT_VERDEF", "DT_VERDEFNUM", structs.Elf_Verdef, "vd_next"):
        if not verdef.vd_flags & _BASE:
            aux = image.parse(structs.Elf_Verdaux, offset + verdef.vd_aux, "a version definition")
            found[verdef.vd_ndx & _INDEX_MASK] = image.string(aux.vda_name)
    return found


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
