"""Reading .deb files: what is inside, without dpkg."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from debian.arfile import ArError
from debian.debfile import DebFile

from sampan.errors import BadInputError


class Contents:
    """The files of one package by their path from the root (``usr/bin/x``); links are followed inside the package."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._members = {posixpath.normpath(member.name): member for member in archive.getmembers()}

    def files(self) -> tuple[str, ...]:
        """Paths of regular files and of links to such, sorted."""
        return tuple(sorted(name for name in self._members if self._file(name)))

    def read(self, path: str) -> bytes:
        """The content of a file. Raises KeyError where there is none."""
        member = self._file(path)
        stream = self._archive.extractfile(member) if member else None
        if stream is None:
            raise KeyError(path)
        return stream.read()

    def executable(self, path: str) -> bool:
        """Whether the package marks it executable."""
        member = self._file(path)
        return bool(member and member.mode & 0o100)

    def link(self, path: str) -> str | None:
        """The target of a symbolic link as written, None for anything else."""
        member = self._members.get(path)
        return member.linkname if member and member.issym() else None

    def _file(self, path: str, depth: int = 8) -> tarfile.TarInfo | None:
        member = self._members.get(path)
        if member is None or member.isfile() or depth == 0:
            return member if member and member.isfile() else None
        if member.islnk():
            return self._file(posixpath.normpath(member.linkname), depth - 1)
        if member.issym():
            target = posixpath.normpath(posixpath.join("/", posixpath.dirname(path), member.linkname))
            return self._file(target.lstrip("/"), depth - 1)
        return None


@contextmanager
def opened(path: Path) -> Iterator[Contents]:
    """Open a .deb. Raises BadInputError ``runtime.bad-deb`` where it is not one."""
    try:
        with DebFile(str(path)) as package:
            yield Contents(package.data.tgz())
    except (ArError, tarfile.TarError, EOFError, UnicodeDecodeError) as error:
        raise BadInputError("runtime.bad-deb", path=str(path), detail=str(error) or type(error).__name__) from error
