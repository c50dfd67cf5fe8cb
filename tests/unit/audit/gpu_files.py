"""Fat binaries and the ELF files around them, written field by field."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

LZ4, ZSTD = 0x2000, 0x8000
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class Image:
    """One entry. ``data`` None makes a program with a kernel, or a PTX text, that suits the other fields."""

    arch: int
    ptx: bool = False
    flags: int = 0x11
    isa: tuple[int, int] = (7, 8)
    toolkit: int = 118
    data: bytes | None = None
    kind: int | None = None
    header: int = 64
    padded: int | None = None

    def build(self) -> bytes:
        """Header and data."""
        data = self.data if self.data is not None else self._data()
        padded = len(data) + -len(data) % 8 if self.padded is None else self.padded
        kind = self.kind if self.kind is not None else 1 if self.ptx else 2
        major, minor = self.isa if self.ptx else (1, 7)
        packed = len(data) if self.flags & (LZ4 | ZSTD) else 0
        fields = (kind, 0x101, self.header, padded, packed, 0, minor, major, self.arch, 0, 0, self.flags, 0, 0)
        return struct.pack("<HHIQIIHHIIIQQQ", *fields) + data + bytes(-len(data) % 8)

    def _data(self) -> bytes:
        if self.flags & (LZ4 | ZSTD):
            return b"\x28\xb5\x2f\xfd packed " if self.flags & ZSTD else b"\xa2\x7fELF packed  "
        if self.ptx:
            return f".version {self.isa[0]}.{self.isa[1]}\n.target sm_{self.arch}\n\0".encode()
        return cubin(self.arch, self.toolkit)


def cubin(arch: int, toolkit: int = 118, *, kernel: bool = True) -> bytes:
    """A GPU program as CUDA 8 to 12 write it: the header, and a section's name."""
    ident = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7)
    flags = arch << 16 | 0x500 | arch
    header = _HEADER.pack(ident, 2, 190, toolkit, 0, 0, 0, flags, 64, 56, 0, 64, 0, 0)
    return header + (b"\0.text.kernel\0" if kernel else b"\0.shstrtab\0")


def container(*images: Image, magic: int = 0xBA55ED50, version: int = 1, size: int | None = None) -> bytes:
    """A container of those alternatives."""
    body = b"".join(image.build() for image in images)
    return struct.pack("<IHHQ", magic, version, 16, len(body) if size is None else size) + body


def library(
    *containers: bytes, name: bytes = b".nv_fatbin", machine: int = 62, needed: Sequence[bytes] = (), gap: int = 8
) -> bytes:
    """A shared library with those containers in one section, the section headers at its end."""
    strings = b"\0" + b"".join(each + b"\0" for each in needed)
    indices, at = [], 1
    for each in needed:
        indices.append(at)
        at += len(each) + 1
    base = 64 + 2 * 56
    tags = [(1, index) for index in indices] + [(5, base), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    names = b"\0" + name + b"\0.shstrtab\0"
    body = bytes(gap).join(containers)
    start = base + len(strings) + len(dynamic)
    table = start + len(body) + len(names)
    sections = [
        (0,) * 10,
        (1, 1, 2, start, start, len(body), 0, 0, 8, 0),
        (1 + len(name) + 1, 3, 0, 0, start + len(body), len(names), 0, 0, 1, 0),
    ]
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = _HEADER.pack(ident, 3, machine, 1, 0, 64, table, 0, 64, 56, 2, 64, len(sections), 2)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, table, table, 65536)
    place = base + len(strings)
    dyn = struct.pack("<IIQQQQQQ", 2, 6, place, place, place, len(dynamic), len(dynamic), 8)
    rows = b"".join(_SECTION.pack(*row) for row in sections)
    return header + load + dyn + strings + dynamic + body + names + rows
