"""Fat binaries: containers of GPU programs. Pure; reads headers and never unpacks what is compressed.

Layout (little-endian), as jiegec/fatbinary and n-eiling/cuda-fatbin-decompression describe it, compared with
cuobjdump on CUDA 11.8, 12.0, 12.9 and 13.5 libraries:

    container  u32 magic 0xBA55ED50, u16 version 1, u16 header size 16, u64 size of what follows
    entry      u16 kind, u16 version, u32 header size, u64 data size, u32 compressed size, u32 options,
               u16 minor, u16 major (of PTX: the ISA version), u32 arch, u32 name, u32 name size, u64 flags,
               u64 -, u64 unpacked size; then the data

Data of kind 2 is an ELF file of machine 190. Up to CUDA 12's format its e_version is the toolkit (129 for 12.9).
Bit 20 of an entry's flags marks code for one capability only (sm_90a), bit 21 for a family (sm_100f): compared with
what ptxas and fatbinary 13.5 write for each of them. Of a bare GPU program the flags tell up to ABI 7 (LLVM's
EF_CUDA_ACCELERATORS_V1); ABI 8 sets no flag, but notes the words that ptxas was started with.
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
_VARIANTS = ((1 << 20, "a"), (1 << 21, "f"))
_NEW_ABI = 8  # EI_ABIVERSION; CUDA 13 writes it
_OLD_ABI_ONLY = 0x800  # e_flags
_FLAGS_END = 52  # bytes: e_flags is the last of them
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
        variant = next((letter for bit, letter in _VARIANTS if flags & bit), "") or _old_variant(data, begin, offset)
        yield GpuImage(name, arch, compression, isa, toolkit, variant)


def cubin(data: mmap | bytes) -> GpuImage:
    """A file that is one GPU program (ELF machine 190, at least a whole 64-bit header)."""
    abi, flags = data[8], struct.unpack_from("<I", data, 48)[0]
    if abi < _NEW_ABI:
        arch, variant = flags & 0xFF, _old_variant(data, 0, len(data))
    else:
        arch = flags >> 8 & 0xFF
        words = (letter for _, letter in _VARIANTS if data.find(f"-arch sm_{arch}{letter} ".encode()) >= 0)
        variant = next(words, "")
    return GpuImage("sass", arch, toolkit=_toolkit(data, 0, len(data)), variant=variant)


def _old_variant(data: mmap | bytes, begin: int, end: int) -> str:
    """What the flags of a GPU program that is not compressed say, up to ABI 7."""
    if end - begin < _FLAGS_END or data[begin : begin + 4] != b"\x7fELF" or data[begin + 8] >= _NEW_ABI:
        return ""
    return "a" if struct.unpack_from("<I", data, begin + _FLAGS_END - 4)[0] & _OLD_ABI_ONLY else ""


def _toolkit(data: mmap | bytes, begin: int, end: int) -> int:
    if end - begin < 24 or data[begin : begin + 4] != b"\x7fELF":
        return 0
    version = int(struct.unpack_from("<I", data, begin + 20)[0])
    return version if version in _TOOLKITS else 0
