"""Decompression as a stream, in bounded memory."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard

from sampan.audit.archives.limits import MEMORY, PIECE
from sampan.audit.archives.member import DamagedArchive
from sampan.audit.archives.streams import Source


class Unpacked:
    """Another source, decompressed; any number of compressed streams one after the other."""

    def __init__(self, source: Source, compression: str) -> None:
        if compression == "zst":
            self._pull: Callable[[], bytes] = _Zstd(source).pull
        else:
            self._pull = _Held(source, _ENGINES[compression]).pull
        self._ready = memoryview(b"")

    def read(self, size: int) -> bytes:
        """See Source."""
        pieces = []
        while size > 0:
            if not self._ready:
                self._ready = memoryview(self._next())
                if not self._ready:
                    break
            pieces.append(bytes(self._ready[:size]))
            self._ready = self._ready[size:]
            size -= len(pieces[-1])
        return b"".join(pieces)

    def skip(self, size: int) -> None:
        """See Source."""
        while size > 0:
            piece = self.read(min(size, PIECE))
            if not piece:
                raise DamagedArchive("it ends in the middle of a member")
            size -= len(piece)

    def _next(self) -> bytes:
        try:
            return self._pull()
        except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError, ValueError) as error:
            raise DamagedArchive(f"its compression is damaged: {error}") from error


class _Engine(Protocol):
    """What bz2's and lzma's decompressors have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's object with the ways of the others."""

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(wbits=31)
        self._tail = b""

    @property
    def eof(self) -> bool:
        return self._engine.eof

    @property
    def needs_input(self) -> bool:
        return not self._tail

    @property
    def unused_data(self) -> bytes:
        return self._engine.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        unpacked = self._engine.decompress(self._tail + data, max_length)
        self._tail = self._engine.unconsumed_tail
        return unpacked


_ENGINES: dict[str, Callable[[], _Engine]] = {
    "gz": _Gzip,
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=MEMORY),
}


class _Held:
    """Engines that say when they want input, and never give more than they are asked for."""

    def __init__(self, source: Source, make: Callable[[], _Engine]) -> None:
        self._source, self._make = source, make
        self._engine, self._fresh = make(), True

    def pull(self) -> bytes:
        """One more piece; empty at the end. Raises DamagedArchive, or what the engine raises."""
        while True:
            data = b""
            if self._engine.eof:
                data = self._engine.unused_data.lstrip(b"\0")  # streams may be padded
                self._engine, self._fresh = self._make(), True
            if not data and self._engine.needs_input:
                data = self._source.read(PIECE)
                if not data and self._fresh:
                    return b""
                if not data:
                    raise DamagedArchive("its compressed data is cut off")
            self._fresh = self._fresh and not data
            unpacked = self._engine.decompress(data, PIECE)
            if unpacked:
                return unpacked


class _Zstd:
    def __init__(self, source: Source) -> None:
        engine = zstandard.ZstdDecompressor(max_window_size=MEMORY)
        self._reader = engine.stream_reader(source, read_size=PIECE, read_across_frames=True)  # type: ignore[arg-type]

    def pull(self) -> bytes:
        """One more piece; empty at the end."""
        return self._reader.read(PIECE)
