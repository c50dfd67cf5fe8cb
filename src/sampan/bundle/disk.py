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
def filesystem_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into errors that say which path and what to do."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or path)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free = shutil.disk_usage(_existing(path)).free
            raise FilesystemError("disk.full", path=where, free_mib=free >> 20) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise FilesystemError("disk.permission", path=where, detail=error.strerror) from error
        raise FilesystemError("disk.failed", path=where, detail=str(error)) from error


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


@contextmanager
def new_file(final: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file beside ``final`` that takes its name when the block ends well, and vanishes otherwise.

    The temporary is locked while it is written: what a killed run left has no lock, and the next run removes it.
    """
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a whole file or nothing. Raises OSError."""
    with new_file(path, mode) as stream:
        stream.write(data)


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A folder beside ``final`` for the block to fill; the block renames it, what is left is removed."""
    sweep(final)
    temporary = Path(tempfile.mkdtemp(prefix=_prefix(final), dir=final.parent))
    handle = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield temporary
    finally:
        os.close(handle)
        if temporary.exists():
            shutil.rmtree(temporary)


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
