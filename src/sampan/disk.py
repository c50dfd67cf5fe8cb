"""Writing so that a reader never sees half of a file or folder, whatever ends the writer."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sampan.errors import FilesystemError


@contextmanager
def filesystem_errors(
    path: Path,
    *,
    full: str = "disk.full",
    refused: str = "disk.permission",
    failed: str = "disk.failed",
    absent: str = "disk.absent",
) -> Iterator[None]:
    """Turn the operating system's refusals into errors that say which path and what to do.

    ``full``, ``refused``, ``failed`` and ``absent`` (a folder on the way) are the catalogue keys: what to do differs
    between workshop and target.
    """
    try:
        yield
    except OSError as error:
        where = str(error.filename or path)
        detail = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free = shutil.disk_usage(existing(path)).free
            raise FilesystemError(full, path=where, free_mib=free >> 20) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise FilesystemError(refused, path=where, detail=detail) from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
            raise FilesystemError(absent, path=where, folder=str(existing(Path(where))), detail=detail) from error
        raise FilesystemError(failed, path=where, detail=detail) from error


def existing(path: Path) -> Path:
    """The nearest folder that exists at or above ``path``."""
    return next((place for place in (path, *path.parents) if place.is_dir()), Path("/"))


@contextmanager
def new_file(final: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file beside ``final`` that takes its name when the block ends well, and vanishes otherwise.

    The temporary is locked while it is written: what a killed run left has no lock, and the next run removes it.
    A device, pipe or socket (``/dev/stdout``, ``/dev/null``) is written to: it must never be replaced by a file.
    """
    if _special(final):
        with final.open("wb") as stream:
            yield stream
        return
    sweep(final)
    handle, name = tempfile.mkstemp(prefix=_prefix(final), dir=final.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
            temporary.replace(final)
        sync_folder(final.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _special(path: Path) -> bool:
    """Whether it is there and is neither a file nor a folder, or stands for an open file as ``/dev/stdout`` does."""
    return path.exists() and (
        not (path.is_file() or path.is_dir()) or str(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    )


def sync_folder(folder: Path) -> None:
    """Let a rename in ``folder`` survive a power cut. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a whole file or nothing. Raises OSError."""
    with new_file(path, mode) as stream:
        stream.write(data)


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A folder beside ``final`` for the block to fill; the block renames it, what is left is removed."""
    sweep(final)
    temporary, handle = _locked_folder(final)
    try:
        yield temporary
    finally:
        if temporary.exists():  # while the lock is held: another run's sweep would take it from under us
            shutil.rmtree(temporary)
        os.close(handle)


def _locked_folder(final: Path) -> tuple[Path, int]:
    """A fresh folder and the lock on it. Another run's ``sweep`` may take one before it is locked: then the next."""
    while True:
        temporary = Path(tempfile.mkdtemp(prefix=_prefix(final), dir=final.parent))
        with suppress(FileNotFoundError):
            handle = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if temporary.exists():
                return temporary, handle
            os.close(handle)


def sweep(final: Path) -> None:
    """Remove the temporaries of ``final`` that no living process holds."""
    for left in final.parent.glob(f"{_prefix(final)}*"):
        with suppress(OSError):  # gone meanwhile, or another's: not ours to judge
            handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)


def _prefix(final: Path) -> str:
    return f".{final.name}.part-"
