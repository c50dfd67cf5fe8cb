"""The file that is sent, read by position. A fault of this disk must not look like one of the line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sampan import i18n
from sampan.errors import BadInputError
from sampan.spec.ports import Progress

_BUFFER_BYTES = 4 << 20


class Here:
    """``size`` in bytes; ``sha256`` of the whole, read once."""

    def __init__(self, path: Path, stream: BinaryIO, progress: Progress) -> None:
        self._path, self._stream = path, stream
        self.size = stream.seek(0, 2)
        self.sha256 = self._digest(progress)

    def _digest(self, progress: Progress) -> str:
        digest = hashlib.sha256()
        self._stream.seek(0)
        with progress.task(i18n.text("carry.hashing"), self.size) as task:
            while piece := self._stream.read(_BUFFER_BYTES):
                digest.update(piece)
                task.advance(len(piece))
        return digest.hexdigest()

    def piece(self, place: int, size: int) -> bytes:
        """At most ``size`` bytes from ``place`` on, never none. Raises BadInputError (unreadable, it got shorter)."""
        try:
            self._stream.seek(place)
            piece = self._stream.read(size)
        except OSError as error:
            raise BadInputError("file.unreadable", path=str(self._path), detail=error.strerror) from error
        if not piece:
            raise BadInputError("carry.shrunk", path=str(self._path))
        return piece

    def blocks(self, unit: int, first: int, count: int, end: int) -> Sequence[str]:
        """SHA-256 of ``count`` blocks of ``unit`` bytes from block ``first`` on, as far as ``end``."""
        found = []
        for number in range(first, first + count):
            self._stream.seek(number * unit)
            data = self._stream.read(max(0, min(unit, end - number * unit)))
            found.append(hashlib.sha256(data).hexdigest())
        return found


@contextmanager
def opened(path: Path, progress: Progress) -> Iterator[Here]:
    """Raises BadInputError."""
    try:
        if not path.is_file():
            raise BadInputError("file.missing", path=str(path))
        stream = path.open("rb")
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error
    with stream:
        yield Here(path, stream, progress)
