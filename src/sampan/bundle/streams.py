"""Streams of pieces: read by length, decompressed in bounded memory."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator
from pathlib import Path

from sampan.errors import BadInputError
from sampan.spec.ports import Task

_WINDOW_BYTES = 64 << 20  # over three executables that differ little: the second and third cost next to nothing
_MEMORY_BYTES = 160 << 20  # of the decompressor: the window and what it needs besides
_PIECE_BYTES = 1 << 20


class Reader:
    """A stream of pieces, read by length."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def copy(self, write: Callable[[bytes], object], size: int) -> int:
        """Hand on ``size`` bytes; how many there were before the stream ended."""
        left = size
        while left:
            if not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._rest = piece
            part, self._rest = self._rest[:left], self._rest[left:]
            write(part)
            left -= len(part)
        return size - left


def decompressed(pieces: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """At most a MiB at a time, whatever a hostile stream would grow to. Raises BadInputError ``delta.stream``."""
    machine = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_BYTES)
    try:
        for piece in pieces:
            yield machine.decompress(piece, _PIECE_BYTES)
            while not machine.eof and not machine.needs_input:
                yield machine.decompress(b"", _PIECE_BYTES)
            if machine.eof:
                return
    except lzma.LZMAError as error:
        raise BadInputError("delta.stream", path=str(path), detail=str(error)) from error


def compressed(pieces: Iterator[bytes], total: int) -> Iterator[bytes]:
    """The same bytes for the same pieces; ``total`` bytes bound the memory that both sides need."""
    window = min(_WINDOW_BYTES, 1 << max(16, (total - 1).bit_length()))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": window}]
    machine = lzma.LZMACompressor(lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=filters)
    for piece in pieces:
        if packed := machine.compress(piece):
            yield packed
    yield machine.flush()


class Quiet(Task):
    """Shows nothing."""

    def advance(self, amount: float = 1) -> None:
        """Nothing to show."""

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
        """Nothing to show."""
