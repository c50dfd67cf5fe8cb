"""One change of an installation at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from sampan.errors import BusyError

NAME = ".lock"  # in the prefix, only while a command is at work, and after one that was killed


class Lock:
    """The lock of a prefix: a file of mode 0600 that names its holder's process. Goes with the process."""

    def __init__(self, prefix: Path) -> None:
        self._path = prefix / NAME
        self._handle: int | None = None

    def take(self) -> None:
        """Hold the lock; the prefix must be there. Raises BusyError naming the holder, OSError."""
        while self._handle is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.read(handle, 20).decode("ascii", "replace").strip() or "?"
                os.close(handle)
                raise BusyError("install.busy", prefix=str(self._path.parent), pid=holder) from error
            if self._is_of(handle):  # else the holder before us removed it between open and lock
                os.ftruncate(handle, 0)
                os.write(handle, f"{os.getpid()}\n".encode())
                self._handle = handle
            else:
                os.close(handle)

    def _is_of(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self._path))
        except FileNotFoundError:
            return False

    @property
    def held(self) -> bool:
        """Whether it is ours."""
        return self._handle is not None

    def free(self) -> None:
        """Let it go, and remove its file while it is still ours."""
        if self._handle is None:
            return
        if self._is_of(self._handle):
            self._path.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = None
