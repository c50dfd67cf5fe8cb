"""Debian packages: an ``ar`` archive with a tar inside. Format: deb(5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from sampan.audit.archives import tars
from sampan.audit.archives.decompress import Unpacked
from sampan.audit.archives.limits import Share
from sampan.audit.archives.member import DamagedArchive, Member
from sampan.audit.archives.streams import HEAD, Plain, compression_of

MAGIC = b"!<arch>\ndebian-binary"
_HEADER = 60
_MAX_PARTS = 16


def members(stream: BinaryIO, share: Share) -> Iterator[Member]:
    """Every member of the data part. Raises DamagedArchive, Excess."""
    start, size = _data(stream)
    head = Plain(stream, start, size).read(HEAD)
    compression = compression_of(head)
    source = Plain(stream, start, size)
    yield from tars.members(Unpacked(source, compression) if compression else source, share)


def _data(stream: BinaryIO) -> tuple[int, int]:
    """Where ``data.tar`` lies."""
    stream.seek(0, 2)
    end, at = stream.tell(), 8
    for _ in range(_MAX_PARTS):
        stream.seek(at)
        header = stream.read(_HEADER)
        number = header[48:58].strip()
        if len(header) < _HEADER or not number.isdigit():
            break
        size = int(number)
        if at + _HEADER + size > end:
            raise DamagedArchive("it ends in the middle of a part")
        if header.startswith(b"data.tar"):
            return at + _HEADER, size
        at += _HEADER + size + size % 2
    raise DamagedArchive("it has no data part")
