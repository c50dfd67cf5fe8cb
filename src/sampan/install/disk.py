"""Writing on the target: explicit modes whatever the umask, all or nothing, safe from a power cut."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sampan.errors import FilesystemError

FOLDER_MODE, PROGRAM_MODE, FILE_MODE = 0o755, 0o755, 0o644


@contextmanager
def filesystem_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into errors that say which path and what to do."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or path)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FilesystemError("install.disk-full", path=where) from error
        raise FilesystemError("install.disk", path=where, detail=error.strerror or str(error)) from error


def existing(path: Path) -> Path:
    """The nearest folder that exists at or above ``path``."""
    return next((p for p in (path, *path.parents) if p.is_dir()), Path("/"))


def make_folders(path: Path) -> tuple[Path, ...]:
    """Make ``path`` and what is missing above it, each 0755; give those made, outermost first. Raises OSError."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for folder in reversed(missing):
        folder.mkdir()
        folder.chmod(FOLDER_MODE)
    return tuple(reversed(missing))


def write(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Write beside ``path``, sync, rename: a reader sees the old file or the new one. Raises OSError."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def point(link: Path, target: str) -> None:
    """Let the symbolic link ``link`` name ``target``, in one step. Raises OSError."""
    temporary = link.with_name(f".{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
    sync_folder(link.parent)


def sync_folder(folder: Path) -> None:
    """Let a rename in ``folder`` survive a power cut. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_empty(folders: tuple[Path, ...]) -> None:
    """Remove those of ``folders`` (outermost first) that are empty by now. Raises OSError."""
    for folder in reversed(folders):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
