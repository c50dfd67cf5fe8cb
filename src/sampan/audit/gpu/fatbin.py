"""Fat binaries: containers of GPU programs. Pure; reads headers and never unpacks what is compressed.

Layout (little-endian), as jiegec/fatbinary and n-eiling/cuda-fatbin-decompression describe it, compared with
cuobjdump on CUDA 11.8, 12.0, 12.9 and 13.5 libraries:

    container  u32 magic 0xBA55ED50, u16 version 1, u16 header size 16, u64 size of what follows
    entry      u16 kind, u16 version, u32 header size, u64 data size, u32 compressed size, u32 options,
               u16 minor, u16 major (of PTX: the ISA version), u32 arch, u32 name, u32 name size, u64 flags,
               u64 -, u64 unpacked size; then the data

Data of kind 2 is an ELF file of machine 190. Up to CUDA 12's format its e_version is the toolkit (129 for 12.9).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from mmap import mmap

from sampan.audit.gpu.facts import Container, GpuCode, GpuImage

MAGIC = 0xBA55ED50
_MAGIC_BYTES = struct.pack("<I", MAGIC)
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_MAX_ENTRY_HEADER = 4096  # bytes; 64 to 120 have been seen
_MAX_IMAGES = 1 << 17  # of one file; cuBLASLt, the largest known, has fewer than 10,000
_KINDS = {1: "ptx", 2: "sass", 16: "sass"}
_SMALL = 4096  # bytes
_LZ4, _ZSTD = 0x2000, 0x8000
_TOOLKITS = range(40, 200)  # CUDA 4.0 to 19.9: anything else in e_version is another format's


class _Damage(Exception):
    """The container contradicts itself; the text says how."""


def read(data: mmap | bytes, start: int, end: int) -> GpuCode:
    """Every container in ``data[start:end]``. Damage ends the reading and is named; what was read before is kept."""
    found: Counter[tuple[GpuImage, ...]] = Counter()
    damage, budget = "", iter(range(_MAX_IMAGES))
    try:
        for images in _containers(data, start, end, budget):
            if images:
                found[tuple(sorted(set(images)))] += 1
    except _Damage as error:
        damage = str(error)
    return GpuCode(tuple(Container(images, count) for images, count in sorted(found.items())), damage)


def _spend(budget: Iterator[int]) -> None:
    """Count one header. Raises _Damage where there have been too many."""
    if next(budget, None) is None:
        raise _Damage(f"more than {_MAX_IMAGES} GPU images")


def _containers(data: mmap | bytes, start: int, end: int, budget: Iterator[int]) -> Iterator[list[GpuImage]]:
    offset = data.find(_MAGIC_BYTES, start, end)
    while offset >= 0:
        _spend(budget)
        if end - offset < _CONTAINER.size:
            raise _Damage("a fat binary's header is cut off")
        _, version, header_size, size = _CONTAINER.unpack_from(data, offset)
        if version != 1 or header_size < _CONTAINER.size:
            raise _Damage(f"a fat binary of version {version} with a header of {header_size} bytes")
        last = offset + header_size + size
        if last > end:
            raise _Damage(f"a fat binary ends {last - end} bytes after its section")
        yield list(_images(data, offset + header_size, last, budget))
        offset = data.find(_MAGIC_BYTES, last, end)


def _images(data: mmap | bytes, offset: int, end: int, budget: Iterator[int]) -> Iterator[GpuImage]:
    while end - offset >= _ENTRY.size:
        _spend(budget)
        kind, _, header, size, packed, _, minor, major, arch, _, _, flags, _, _ = _ENTRY.unpack_from(data, offset)
        if not _ENTRY.size <= header <= _MAX_ENTRY_HEADER:
            raise _Damage(f"a GPU image with a header of {header} bytes")
        begin, offset = offset + header, offset + header + size
        if offset > end or packed > size:
            raise _Damage("a GPU image leads out of its container")
        name = _KINDS.get(kind, "other")
        if (
            name == "sass"
            and size <= _SMALL
            and not flags & (_LZ4 | _ZSTD)
            and data.find(b".text", begin, offset) < 0
        ):
            continue  # a program without a kernel, as nvcc leaves where only the link needed one
        compression = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else "none"
        isa = f"{major}.{minor}" if name == "ptx" and major else ""
        toolkit = _toolkit(data, begin, offset) if name == "sass" and compression == "none" else 0
        yield GpuImage(name, arch, compression, isa, toolkit)


def cubin(data: mmap | bytes) -> GpuImage:
    """A file that is one GPU program (ELF machine 190, at least a whole 64-bit header)."""
    abi, flags = data[8], struct.unpack_from("<I", data, 48)[0]
    arch = (flags >> 8 if abi >= 8 else flags) & 0xFF
    return GpuImage("sass", arch, toolkit=_toolkit(data, 0, len(data)))


def _toolkit(data: mmap | bytes, begin: int, end: int) -> int:
    if end - begin < 24 or data[begin : begin + 4] != b"\x7fELF":
        return 0
    version = int(struct.unpack_from("<I", data, begin + 20)[0])
    return version if version in _TOOLKITS else 0
