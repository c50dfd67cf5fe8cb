"""The file of API keys, as install meets it: whether it will do, and whose it must be for the service to read it.

The gateway refuses a file that anybody but its owner may read (``keys.mode``), so a service's own user must own it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sampan.install import account
from sampan.install.machine import Machine
from sampan.install.model import Installed, user_name

HOME = "etc/sampan"  # below it, a folder a service: the administrator's
NAME = "keys.json"
_PRIVATE = 0o600
_SEARCH = stat.S_IXGRP | stat.S_IXOTH
_OPEN = stat.S_IRWXG | stat.S_IRWXO


def path_of(machine: Machine, name: str, given: str | None) -> Path:
    """The file ``given`` at installation, else the service's own."""
    return Path(given) if given else machine.root / HOME / name / NAME


def state(path: Path) -> str:
    """absent, none (no key in it is in force), set, or unfit (others may read it, or it cannot be read)."""
    try:
        if path.stat().st_mode & _OPEN:
            return "unfit"
        keys = json.loads(path.read_bytes())["keys"]
        return "set" if any(not key.get("revoked") for key in keys) else "none"
    except FileNotFoundError:
        return "absent"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "unfit"


def hand_over(machine: Machine, record: Installed) -> None:
    """Let the service's user own and reach its keys. A file elsewhere is taken from root only. Raises OSError."""
    if record.user is None or (ids := account.ids(machine, record.user)) is None:
        return
    if record.certificate_key:
        _take(Path(record.certificate_key), ids, of_root_only=True)
    path = path_of(machine, record.name, record.keys)
    if not _take(path, ids, of_root_only=bool(record.keys)):
        return
    if not record.keys:  # a umask of 077 closes the folders that root made for it
        for folder in (path.parent, path.parent.parent):
            mode = stat.S_IMODE(folder.stat().st_mode)
            if mode & _SEARCH != _SEARCH:
                folder.chmod(mode | _SEARCH)


def _take(path: Path, ids: tuple[int, int], *, of_root_only: bool) -> bool:
    """Let the user own the file; whether there is one."""
    with _opened(path) as handle:
        if handle is None:
            return False
        owner = _owner(handle)
        if owner != ids[0] and (not of_root_only or owner == 0):
            os.fchown(handle, *ids)
            os.fchmod(handle, _PRIVATE)
    return True


def give_back(machine: Machine, name: str, given: str | None, certificate_key: str | None = None) -> None:
    """Let root own the keys of a user that is about to go: its number may be another's one day. Raises OSError."""
    ids = account.ids(machine, user_name(name))
    if ids is None:
        return
    tls = {Path(certificate_key)} if certificate_key else set()
    for path in {path_of(machine, name, None), path_of(machine, name, given)} | tls:
        with _opened(path) as handle:
            if handle is not None and _owner(handle) == ids[0]:
                os.fchown(handle, 0, 0)
                os.fchmod(handle, _PRIVATE)


def _owner(handle: int) -> int:
    return os.fstat(handle).st_uid


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """A plain file, never what a link names; None where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield handle if stat.S_ISREG(os.fstat(handle).st_mode) else None
    finally:
        os.close(handle)
