"""Bytes one after the other, and how they are compressed."""

from __future__ import annotations

from typing import BinaryIO, Protocol

from sampan.audit.archives.member import DamagedArchive

_MAGICS = (
    (b"\x1f\x8b", "gz"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"BZh", "bz2"),
)
HEAD = 6  # bytes that tell the format


class Source(Protocol):
    """Bytes, one after the other."""

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; empty at the end. Raises DamagedArchive."""
        ...

    def skip(self, size: int) -> None:
        """Pass over so many bytes. Raises DamagedArchive where there are fewer."""
        ...


def compression_of(head: bytes) -> str | None:
    """By the first bytes."""
    return next((name for magic, name in _MAGICS if head.startswith(magic)), None)


class Plain:
    """A part of a file as it stands."""

    def __init__(self, stream: BinaryIO, start: int, size: int) -> None:
        self._stream, self._at, self._end = stream, start, start + size

    def read(self, size: int) -> bytes:
        """See Source."""
        self._stream.seek(self._at)
        piece = self._stream.read(max(0, min(size, self._end - self._at)))
        self._at += len(piece)
        return piece

    def skip(self, size: int) -> None:
        """See Source; costs nothing."""
        self._at += size
        if self._at > self._end:
            raise DamagedArchive("it ends in the middle of a member")
