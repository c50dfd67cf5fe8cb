"""Changes that keep a file's outer form, so that the damage lies deep: fields of tables, members of archives."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable

import zstandard
from tests.fuzz import mutate_archives, mutate_elf
from tests.fuzz.mutate_bytes import Dice, scramble, splice

_PACKED: tuple[tuple[bytes, Callable[[bytes], bytes], Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", gzip.decompress, lambda data: gzip.compress(data, 1)),
    (b"BZh", bz2.decompress, lambda data: bz2.compress(data, 1)),
    (b"\xfd7zXZ", lzma.decompress, lambda data: lzma.compress(data, preset=0)),
    (
        b"\x28\xb5\x2f\xfd",
        lambda data: zstandard.ZstdDecompressor().decompress(data, 1 << 24),
        lambda data: zstandard.ZstdCompressor().compress(data),
    ),
)
# What the standard library says of a file whose form cannot be kept, since it was damaged before.
_UNFIT = (ValueError, OSError, EOFError, KeyError, IndexError, RuntimeError, struct.error, lzma.LZMAError, zlib.error,
          zipfile.BadZipFile, tarfile.TarError, zstandard.ZstdError, NotImplementedError, OverflowError)  # fmt: skip


def change(data: bytes, dice: Dice, others: list[bytes], depth: int = 3) -> bytes:
    """One changed copy. What ``others`` hold may turn up in it."""
    ways: list[Callable[[bytes], bytes]] = [
        lambda data: scramble(data, dice),
        lambda data: splice(data, dice.choice(others), dice),
    ]
    inner = _within(data, dice, others, depth) if depth else None
    if inner:
        ways = [*ways, inner, inner, inner]
    try:
        return dice.choice(ways)(data)
    except _UNFIT:
        return scramble(data, dice)


def _within(data: bytes, dice: Dice, others: list[bytes], depth: int) -> Callable[[bytes], bytes] | None:
    """A change that knows the form of ``data``."""

    def deeper(data: bytes) -> bytes:
        return change(data, dice, others, depth - 1)

    for magic, opened, packed in _PACKED:
        if data.startswith(magic):
            return lambda data: packed(deeper(opened(data)))
    if data.startswith(b"\x7fELF"):
        return lambda data: dice.choice((mutate_elf.field, mutate_elf.field, mutate_elf.code))(data, dice)
    if data.startswith(b"PK"):
        return lambda data: mutate_archives.changed_zip(data, dice, deeper)
    if data[257:262] == b"ustar":
        return lambda data: mutate_archives.changed_tar(data, dice, deeper)
    return None
