"""A machine over there, in memory: it can break off, lie, fill up, and change what was written."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sampan.carry.remote import Remote
from sampan.errors import FilesystemError, NetworkError


@dataclass
class RemoteFiles:
    """``breaks``: bytes after which the line breaks, one each connection; ``rot``: positions that come out wrong
    when they are written for the first time.
    """

    files: dict[str, bytearray] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {"/data"})
    breaks: list[int] = field(default_factory=list)
    rot: set[int] = field(default_factory=set)
    room: int | None = None
    tells_room: bool = True
    connections: int = 0
    names: list[str] = field(default_factory=list)  # every name that a file ever had
    way: str = "cat"
    proof: str = "target"
    _left: int | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Remote]:
        """A connection; the next break is due on it."""
        self.connections += 1
        self._left = self.breaks.pop(0) if self.breaks else None
        yield self

    def _used(self) -> int:
        return sum(map(len, self.files.values()))

    async def is_folder(self, path: str) -> bool:
        return path in self.folders

    async def size(self, path: str) -> int | None:
        return len(self.files[path]) if path in self.files else None

    async def free(self, folder: str) -> int | None:  # noqa: ARG002
        return self.room - self._used() if self.room is not None and self.tells_room else None

    async def blocks(self, path: str, unit: int, first: int, count: int) -> Sequence[str]:
        data = self.files[path]
        return [
            hashlib.sha256(data[number * unit : (number + 1) * unit]).hexdigest()
            for number in range(first, first + count)
        ]

    async def digest(self, path: str) -> str:
        return hashlib.sha256(self.files[path]).hexdigest()

    async def truncate(self, path: str, size: int) -> None:
        data = self.files.setdefault(path, bytearray())
        self.names.append(path)
        del data[size:]
        data.extend(bytes(size - len(data)))

    async def write(self, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        data, place = self.files[path], offset
        async for piece in pieces:
            sent = piece if self._left is None else piece[: self._left]
            if self.room is not None and self._used() + len(sent) > self.room:
                raise FilesystemError("carry.refused", path=path, host="there", detail="Failure")
            data[place : place + len(sent)] = sent
            for spot in [spot for spot in self.rot if place <= spot < place + len(sent)]:
                data[spot] ^= 0xFF
                self.rot.discard(spot)
            place += len(sent)
            if self._left is not None:
                self._left -= len(sent)
                if not self._left:
                    raise NetworkError("ssh.broken", host="there", detail="cut")

    async def rename(self, old: str, new: str) -> None:
        self.files[new] = self.files.pop(old)
        self.names.append(new)
