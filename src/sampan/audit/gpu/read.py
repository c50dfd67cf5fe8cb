"""The reader of GPU code in an ELF file: finds the sections that hold fat binaries."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sampan.audit.facts import ElfFacts
from sampan.audit.gpu import fatbin
from sampan.audit.gpu.facts import Container, GpuCode

CUBIN = "EM_CUDA"
_NAMES = (b".nv_fatbin", b"__nv_relfatbin", b".nvFatBin")  # .nvFatBinSegment holds pointers to the first, if any
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOBITS = 8
_MAX_NAMES = 1 << 24  # bytes of section names


def read(path: Path, facts: ElfFacts) -> ElfFacts:
    """Fill in ``gpu``, where the file carries any. Only 64-bit little-endian files do. Raises OSError."""
    if facts.bits != 64 or not facts.little_endian:
        return facts
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if facts.machine == CUBIN:
            return replace(facts, gpu=GpuCode((Container((fatbin.cubin(data),), 1),)))
        parts = [fatbin.read(data, start, end) for start, end in _places(data)]
    found = _joined(parts)
    return replace(facts, gpu=found) if found.containers or found.damage else facts


def _joined(parts: list[GpuCode]) -> GpuCode:
    damage = next((part.damage for part in parts if part.damage), "")
    return GpuCode(tuple(each for part in parts for each in part.containers), damage)


def _places(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Start and end of each section with fat binaries. A file without section headers is searched as a whole."""
    header = _HEADER.unpack_from(data)
    table, size, count, names = header[6], header[11], header[12], header[13]
    if not table or not count:
        yield 0, len(data)
        return
    if size != _SECTION.size or table + size * count > len(data):
        return
    sections = list(_SECTION.iter_unpack(data[table : table + size * count]))
    strings = _bytes(data, sections[names][4], min(sections[names][5], _MAX_NAMES)) if names < count else b""
    for name, kind, _, _, offset, length, *_ in sections:
        if kind != _NOBITS and strings[name : name + 16].startswith(_NAMES):
            yield min(offset, len(data)), min(offset + length, len(data))


def _bytes(data: mmap.mmap, offset: int, length: int) -> bytes:
    return data[offset : offset + length] if offset <= len(data) else b""
