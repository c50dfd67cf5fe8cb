"""The dynamic symbols of one file: what it wants of others, and what it gives them.

How many there are is not written anywhere: it follows from the hash table, which leaves undefined symbols out, and
from the relocations, which reach those. Formats: the generic ELF specification; for the GNU hash table, binutils
bfd/elflink.c and glibc elf/dl-lookup.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from sampan.audit.facts import Symbols
from sampan.audit.image import MAX_STRING, Broken, Image

MAX_SYMBOLS = 1 << 19  # PyTorch's largest library has a quarter of that
_MAX_NAMES = 1 << 26  # bytes of all names: names of a damaged table may overlap without end
_INDEX_MASK = 0x7FFF
_LAYOUT = {64: "IBBHQQ", 32: "IIIBBH"}
_ORDER = {64: (0, 1, 2, 3, 4), 32: (0, 3, 4, 5, 1)}  # name, info, other, section, value
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1  # SHN_UNDEF, SHN_ABS
_LOCAL, _WEAK = 0, 2
_TLS = 6
_HIDDEN = (1, 2)  # STV_INTERNAL, STV_HIDDEN


@dataclass
class Table:
    """``symbols`` is the value to keep; ``by_version`` has the undefined names of each version index."""

    symbols: Symbols = field(default_factory=Symbols)
    by_version: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Symbol:
    name: str
    weak: bool
    undefined: bool
    version: int


def read(image: Image, highest: int, versions: Mapping[int, str]) -> Table:
    """``highest``: the highest index in a relocation; ``versions``: names by index. Raises Broken."""
    if not image.value("DT_SYMTAB"):
        return Table()
    count = max(_count(image), highest + 1)
    result, wanted, given = Table(), [], dict[str, set[str]]()
    for symbol in _symbols(image, count):
        version = versions.get(symbol.version, "")
        if not symbol.undefined:
            given.setdefault(symbol.name, set()).add(version)
            continue
        if symbol.version > 1:
            result.by_version.setdefault(symbol.version, []).append(symbol.name)
        if not symbol.weak:
            wanted.append((symbol.name, version))
    sorted_given = {name: tuple(sorted(found)) for name, found in given.items()}
    result.symbols = Symbols(tuple(wanted), sorted_given, complete=count <= MAX_SYMBOLS)
    return result


def is_defined(image: Image, index: int) -> bool:
    """Whether the symbol belongs to the file itself. Raises Broken."""
    layout = _layout(image)
    start = image.offset_of(image.value("DT_SYMTAB"), "the symbol table") + index * layout.size
    raw = layout.unpack(image.table(start, layout.size, "the symbol table"))
    return bool(raw[_ORDER[image.elf.elfclass][3]] != _UNDEFINED)


def _layout(image: Image) -> struct.Struct:
    return struct.Struct(("<" if image.elf.little_endian else ">") + _LAYOUT[image.elf.elfclass])


def _symbols(image: Image, count: int) -> Iterator[_Symbol]:
    """Those that the loader would use."""
    layout, order = _layout(image), _ORDER[image.elf.elfclass]
    start = image.offset_of(image.value("DT_SYMTAB"), "the symbol table")
    image.check(start, count * layout.size, "the symbol table")
    count = min(count, MAX_SYMBOLS)
    table = image.table(start, count * layout.size, "the symbol table")
    names = _Names(image)
    for raw, version in zip(layout.iter_unpack(table), _indices(image, count), strict=True):
        name, info, other, section, value = (raw[index] for index in order)
        binding = info >> 4
        if not name or binding == _LOCAL:
            continue
        undefined = section == _UNDEFINED
        usable = value or section == _ABSOLUTE or info & 0xF == _TLS
        if undefined or (usable and other & 3 not in _HIDDEN):
            yield _Symbol(names.at(name), binding == _WEAK, undefined, version & _INDEX_MASK)


def _indices(image: Image, count: int) -> tuple[int, ...]:
    if not image.value("DT_VERSYM"):
        return (0,) * count
    start = image.offset_of(image.value("DT_VERSYM"), "the symbol versions")
    order = "<" if image.elf.little_endian else ">"
    return struct.unpack(f"{order}{count}H", image.table(start, count * 2, "the symbol versions"))


class _Names:
    """The string table, and how much of it was handed out."""

    def __init__(self, image: Image) -> None:
        start, size = image.strings
        self._bytes = image.table(start, size, "the string table")
        self._left = _MAX_NAMES

    def at(self, index: int) -> str:
        """Raises Broken."""
        if index >= len(self._bytes):
            raise Broken("a name lies outside of the string table")
        end = self._bytes.find(b"\0", index, index + MAX_STRING)
        raw = self._bytes[index : end if end >= 0 else index + MAX_STRING]
        self._left -= len(raw)
        if self._left < 0:
            raise Broken("the names of the symbols have no end")
        return raw.decode("utf-8", "backslashreplace")


def _count(image: Image) -> int:
    """How many symbols the hash tables know of."""
    order = "<" if image.elf.little_endian else ">"
    if image.value("DT_HASH"):
        offset = image.offset_of(image.value("DT_HASH"), "the symbol hash table")
        return int(struct.unpack(order + "II", image.table(offset, 8, "the symbol hash table"))[1])
    if image.value("DT_GNU_HASH"):
        return _gnu_count(image, order)
    return 0


def _gnu_count(image: Image, order: str) -> int:
    """The chain that begins last ends with the last symbol."""
    what = "the symbol hash table"
    start = image.offset_of(image.value("DT_GNU_HASH"), what)
    buckets, first, bloom = struct.unpack(order + "III", image.table(start, 12, what))
    offset = start + 16 + bloom * (image.elf.elfclass // 8)
    if not buckets:
        return int(first)
    last = int(np.frombuffer(image.table(offset, buckets * 4, what), f"{order}u4").max())
    if last < first:
        return int(first)
    offset += buckets * 4 + (last - first) * 4
    for step in range(MAX_SYMBOLS):
        if int.from_bytes(image.table(offset + step * 4, 4, what), "little" if order == "<" else "big") & 1:
            return last + step + 1
    raise Broken("a chain of the symbol hash table has no end")
