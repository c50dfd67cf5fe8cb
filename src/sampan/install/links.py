"""A bundle's own file becomes the release's by a second name: no byte is copied, and either folder may go."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from sampan.errors import VerificationError
from sampan.install.disk import FILE_MODE, PROGRAM_MODE

_BLOCK = 1 << 20
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def may(path: Path, device: int) -> bool:
    """Whether the file can be given a second name on ``device`` that nobody but its owner can write through.

    It must belong to whoever installs: another owner could still change what the service then runs.
    """
    try:
        found = path.lstat()
    except OSError:
        return False
    return found.st_dev == device and _ours(found)


def _ours(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def link(source: Path, copy: Path, digest: str | None) -> int | None:
    """Let ``copy`` be another name of ``source``, and give its size; None where it must be copied.

    Judged and hashed under its new name, where nobody else can exchange it. Raises VerificationError.
    """
    try:
        os.link(source, copy, follow_symlinks=False)
    except OSError:  # another disk, one without links, or one that refuses them
        return None
    handle = os.open(copy, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        found = os.fstat(handle)
        if not _ours(found) or _being_written(handle):
            copy.unlink()
            return None
        if digest is not None and _digest(handle) != digest:
            raise VerificationError("install.changed-file", path=source.name)
        os.fchmod(handle, PROGRAM_MODE if found.st_mode & 0o100 else FILE_MODE)
        return found.st_size
    finally:
        os.close(handle)


def _being_written(handle: int) -> bool:
    """Whether a process has the file open for writing, or that cannot be told: the kernel then gives no lease."""
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return True
    with suppress(OSError):
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _digest(handle: int) -> str:
    seen = hashlib.sha256()
    while block := os.read(handle, _BLOCK):
        seen.update(block)
    return seen.hexdigest()
