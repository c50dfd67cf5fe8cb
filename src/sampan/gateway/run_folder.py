"""The private folder of one running service: its engine's socket lives there, for its own user only."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sampan.errors import ServiceError

_PREFIX = "sampan-gateway-"
_LOCK = "lock"
SOCKET_NAME = "engine.sock"  # llama-server knows a Unix socket by the ending
_LONGEST_SOCKET_PATH = 107  # sockaddr_un.sun_path is 108 bytes with its final zero


def choose_base(environ: Mapping[str, str]) -> Path:
    """systemd's RuntimeDirectory, else the user's, else the temporary folder."""
    for name in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        first = environ.get(name, "").split(":")[0]
        if first and os.access(first, os.W_OK | os.X_OK):
            return Path(first)
    return Path(tempfile.gettempdir())


@contextmanager
def run_folder(base: Path) -> Iterator[Path]:
    """A fresh folder of mode 0700 below ``base``, removed at the end. Raises ServiceError.

    Folders that a killed service left behind are removed first: their lock is free.
    """
    _sweep(base)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    except OSError as error:
        raise ServiceError("gateway.run-folder", path=str(base), detail=error.strerror) from error
    lock = _locked(folder)
    try:
        check_socket_path(folder / SOCKET_NAME)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int:
    """Under its final name the lock is held already, so no sweep ever sees it free."""
    fresh = folder / f".{_LOCK}"
    lock = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    fresh.rename(folder / _LOCK)
    return lock


def check_socket_path(path: Path) -> None:
    """Raises ServiceError where the kernel or llama-server could not take the path."""
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH or any(sign in str(path) for sign in ',"'):
        raise ServiceError("gateway.socket-path", path=str(path), limit=_LONGEST_SOCKET_PATH)


def _sweep(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        if folder.is_symlink() or folder.lstat().st_uid != os.geteuid():
            continue
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:  # not ours to judge: just being made, or just being removed
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:  # its service runs
            continue
        finally:
            os.close(lock)
