"""Zip archives, member by member, for wheels too.

Format: PKWARE APPNOTE.TXT 6.3.10, 4.3.16 (end of central directory) and 4.3.14 (its 64-bit form).
"""

from __future__ import annotations

import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, TypeVar

from sampan.audit.archives.limits import MAX_DIRECTORY, MAX_NAME, PIECE, Excess, Share
from sampan.audit.archives.member import DamagedArchive, Member

T = TypeVar("T")

_END = struct.Struct("<4s4H2LH")
_END_MAGIC, _END64_MAGIC, _LOCATOR_MAGIC = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_MAX_COMMENT = 65535
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)  # lzma's memory is the archive's to say
_ENCRYPTED = 0x1
_FAULTS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
)


def members(stream: BinaryIO, share: Share) -> Iterator[Member]:
    """Every member in the order of the directory. Raises DamagedArchive, Excess."""
    _check_directory(stream)
    archive = _safely(lambda: zipfile.ZipFile(stream))
    with archive:
        for info in archive.infolist():
            share.member()
            yield from _one(archive, info, share)


def _one(archive: zipfile.ZipFile, info: zipfile.ZipInfo, share: Share) -> Iterator[Member]:
    kind = _kind(info)
    if kind in ("folder", "other"):
        yield Member(info.filename, kind)
        return
    body = _Body(archive, info, share)
    with body:
        if kind == "link":
            yield Member(info.filename, kind, body.read(MAX_NAME).decode("utf-8", "surrogateescape"))
        else:
            yield Member(info.filename, kind, read=body.read)


class _Body:
    """The bytes of one member, opened when they are wanted."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, share: Share) -> None:
        self._archive, self._info, self._share = archive, info, share
        self._open: IO[bytes] | None = None

    def __enter__(self) -> _Body:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open:
            self._open.close()

    def read(self, size: int) -> bytes:
        piece = _safely(lambda: self._stream().read(min(size, PIECE)))
        self._share.spend(len(piece))
        return piece

    def _stream(self) -> IO[bytes]:
        if self._open is None:
            info = self._info
            if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
                raise DamagedArchive(f"encrypted, or compressed by method {info.compress_type}")
            self._open = self._archive.open(info)
        return self._open


def _kind(info: zipfile.ZipInfo) -> str:
    mode = info.external_attr >> 16 if info.create_system == 3 else 0  # 3: Unix
    if info.filename.endswith("/") or stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) or not stat.S_IFMT(mode) else "other"


def _safely(action: Callable[[], T]) -> T:
    """The standard library's many ways to say that a zip is broken, as one."""
    try:
        return action()
    except _FAULTS as error:
        raise DamagedArchive(str(error) or type(error).__name__) from error
    except OSError as error:
        if error.errno is None or error.errno == 22:  # bz2's own, or a seek before the start
            raise DamagedArchive(str(error)) from error
        raise


def _check_directory(stream: BinaryIO) -> None:
    """The directory is read into memory as a whole: refuse one that is no directory but a bomb."""
    stream.seek(0, 2)
    length = stream.tell()
    tail_size = min(length, _MAX_COMMENT + _END.size + 20 + 56)
    stream.seek(length - tail_size)
    tail = stream.read(tail_size)
    at = tail.rfind(_END_MAGIC)
    if at < 0 or at + _END.size > len(tail):
        raise DamagedArchive("it has no directory at its end: cut off, or not a zip")
    size = _END.unpack_from(tail, at)[5]
    if at >= 20 and tail[at - 20 : at - 16] == _LOCATOR_MAGIC:
        size = _size64(stream, struct.unpack_from("<Q", tail, at - 12)[0], length)
    if size > MAX_DIRECTORY:
        raise Excess(f"has a directory of {size >> 20} MiB")


def _size64(stream: BinaryIO, offset: int, length: int) -> int:
    if offset + 56 > length:
        raise DamagedArchive("its directory lies outside of it")
    stream.seek(offset)
    record = stream.read(56)
    return int(struct.unpack_from("<Q", record, 40)[0]) if record.startswith(_END64_MAGIC) else 0
