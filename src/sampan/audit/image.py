"""An open ELF file: bytes that are only read where the file has them.

Layouts and names come from pyelftools; every count, offset and length is bounded here.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from elftools.common.utils import struct_parse
from elftools.elf.elffile import ELFFile

MAX_STRING = 4096  # bytes: PATH_MAX; longer names are cut, not refused


class Broken(Exception):
    """The file contradicts itself; the text says where."""


@dataclass(frozen=True)
class Segment:
    """One program header that the loader heeds; bytes."""

    kind: str
    offset: int
    vaddr: int
    file_size: int
    memory_size: int
    align: int
    flags: int = 0


@dataclass
class Image:
    """An open ELF file: raw bytes, layouts, and the mapping of addresses to offsets."""

    data: mmap.mmap
    elf: ELFFile
    segments: tuple[Segment, ...] = ()
    dynamic: dict[str, list[int]] = field(default_factory=dict)

    def table(self, offset: int, size: int, what: str) -> bytes:
        """``size`` bytes at ``offset``. Raises Broken where the file does not have them."""
        self.check(offset, size, what)
        return self.data[offset : offset + size]

    def check(self, offset: int, size: int, what: str) -> None:
        """Raises Broken where the file does not have ``size`` bytes at ``offset``."""
        if size < 0 or offset < 0 or offset + size > len(self.data):
            raise Broken(f"{what} lies outside of the file")

    def offset_of(self, address: int, what: str) -> int:
        """Where in the file the loader would find ``address``. Raises Broken."""
        for segment in self.segments:
            if segment.kind == "PT_LOAD" and 0 <= address - segment.vaddr < segment.file_size:
                return address - segment.vaddr + segment.offset
        raise Broken(f"{what} is at an address that no segment maps")

    def parse(self, layout: Any, offset: int, what: str) -> Any:
        """One structure. Raises Broken, ELFError."""
        self.table(offset, layout.sizeof(), what)
        return struct_parse(layout, self.elf.stream, stream_pos=offset)

    def string(self, index: int) -> str:
        """A name from the dynamic string table. Raises Broken."""
        start, size = self.strings
        if not 0 <= index < size:
            raise Broken("a name lies outside of the string table")
        piece = self.data[start + index : start + min(size, index + MAX_STRING)]
        return piece.partition(b"\0")[0].decode("utf-8", "backslashreplace")

    @cached_property
    def strings(self) -> tuple[int, int]:
        """Offset and size of the dynamic string table. Raises Broken."""
        return self.offset_of(self.value("DT_STRTAB"), "the string table"), self.value("DT_STRSZ")

    def value(self, tag: str) -> int:
        """The dynamic entry's value, 0 where it is absent."""
        return self.dynamic.get(tag, [0])[0]
