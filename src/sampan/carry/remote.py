"""What carrying needs of the machine over there: files in one folder, read and written by position."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class Remote(Protocol):
    """One live connection. Every call raises NetworkError where it breaks, FilesystemError where the target refuses.

    Paths that do not begin with a slash are relative to the login's folder.
    """

    @property
    def way(self) -> str:
        """How bytes go: sftp or cat."""
        ...

    @property
    def proof(self) -> str:
        """Who hashes: target or read-back."""
        ...

    async def is_folder(self, path: str) -> bool:
        """Whether a folder is there."""
        ...

    async def size(self, path: str) -> int | None:
        """Bytes of a file, None where there is none."""
        ...

    async def free(self, folder: str) -> int | None:
        """Bytes that may be written there, None where the target does not tell."""
        ...

    async def blocks(self, path: str, unit: int, first: int, count: int) -> Sequence[str]:
        """SHA-256 of ``count`` blocks of ``unit`` bytes from block ``first`` on; the last may be shorter."""
        ...

    async def digest(self, path: str) -> str:
        """SHA-256 of the whole file."""
        ...

    async def truncate(self, path: str, size: int) -> None:
        """Make the file, or cut it to ``size`` bytes."""
        ...

    async def write(self, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        """Write on from ``offset``, a multiple of ``SUB`` or the file's end."""
        ...

    async def rename(self, old: str, new: str) -> None:
        """Give the file its name; one of that name must not be there."""
        ...
