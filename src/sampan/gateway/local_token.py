"""What lets the self-test on this machine ask a service that asks for keys: a token in the service's private folder.

Who can read it is the service's own user or root, who could read model and keys anyway.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sampan.disk import new_file
from sampan.errors import ServiceError

_PREFIX = "st-sampan-"
_SECRET_BYTES = 32
_TOKEN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")
_LONGEST = 256  # bytes that are read of a file that may not be ours


def fresh() -> str:
    """A token of 256 bits from the kernel's random source."""
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


@contextmanager
def published(folder: Path | None, port: int, token: str) -> Iterator[None]:
    """In ``folder``, mode 0600, while the block runs; a successor's is left alone. None: nowhere.

    Raises ServiceError where it cannot be written.
    """
    if folder is None:
        yield
        return
    path = _file(folder, port)
    try:
        with new_file(path, 0o600) as stream:
            stream.write(token.encode())
    except OSError as error:
        raise ServiceError("gateway.run-folder", path=str(folder), detail=str(error.strerror)) from error
    try:
        yield
    finally:
        if _read(path)[1] == token:
            path.unlink(missing_ok=True)


def find(folders: Iterable[Path], port: int) -> str | None:
    """The token of the service that was the last to begin on ``port``, as far as this user may know it."""
    found = [_read(_file(folder, port)) for folder in folders if _is_private(folder)]
    return max(found, default=(0, ""))[1] or None


def _file(folder: Path, port: int) -> Path:
    return folder / f"selftest-{port}.token"


def _is_private(folder: Path) -> bool:
    """Ours, or made where root alone makes folders (``/run``): nobody else may plant a token there."""
    try:
        found, above = folder.lstat(), folder.parent.stat()
    except OSError:
        return False
    planted_by_root = above.st_uid == 0 and not above.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    closed = stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return closed and (found.st_uid == os.geteuid() or planted_by_root)


def _read(path: Path) -> tuple[int, str]:
    """When it was written (ns), and the token; (0, "") for whatever is no private file with a token in it.

    Root reads in a service's folder here: a link, a pipe or another file's text must never be passed on.
    """
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            found = os.fstat(handle)
            own = stat.S_ISREG(found.st_mode) and found.st_uid == path.parent.stat().st_uid
            if own and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                text = stream.read(_LONGEST).decode("ascii", "replace")
                if _TOKEN.fullmatch(text):
                    return found.st_mtime_ns, text
    return 0, ""
