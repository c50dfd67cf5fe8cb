"""What of the machine bears on where and beside what a service is installed: mounts, cgroups, other services."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from sampan.install.machine import Machine
from sampan.install.model import DEFAULT_HOME, RECORD, RELEASES, unit_name, user_home

_PORT = re.compile(r"^ExecStart=.* --port (\d+)", re.MULTILINE)
_HUGE = 1 << 62  # cgroups v1 write "no limit" as a huge number


def no_exec(prefix: Path, folder: Path) -> str | None:
    """The folder from which nothing may run: where the prefix goes, or a mount below it. Raises OSError."""
    places = (folder, prefix, prefix / RELEASES)
    return next((str(place) for place in places if place.is_dir() and _mounted_no_exec(place)), None)


def _mounted_no_exec(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def closed(folder: Path) -> str | None:
    """The outermost folder on the way that other users may not enter. Raises OSError."""
    return next((str(p) for p in reversed((folder, *folder.parents)) if not p.stat().st_mode & 0o001), None)


def memory_limit(machine: Machine) -> int | None:
    """The smallest limit in bytes that a cgroup above the services sets; None where none does."""
    tops = ("sys/fs/cgroup/memory", "sys/fs/cgroup")
    names = [f"{top}{part}/{file}" for top in tops for part in ("", "/system.slice") for file in _KNOBS]
    found = [int(text) for text in (machine.read(name).strip() for name in names) if text.isdecimal()]
    return min((limit for limit in found if limit < _HUGE), default=None)


_KNOBS = ("memory.max", "memory.limit_in_bytes")


def port_of_others(machine: Machine, name: str, port: int) -> str | None:
    """Another sampan service that is set to ``port``, running or not."""
    own = unit_name(name)
    for path in sorted((machine.root / "etc/systemd/system").glob("sampan-*.service")):
        found = _PORT.search(machine.read(str(path.relative_to(machine.root))))
        if path.name != own and found and int(found[1]) == port:
            return path.name
    return None


def other_copies(name: str, prefix: Path) -> tuple[str, ...]:
    """Where else a service of this name is installed."""
    return tuple(str(place) for place in _usual(name) if place != prefix and (place / RECORD).is_file())


def _usual(name: str) -> Iterator[Path]:
    yield DEFAULT_HOME / name
    yield user_home() / name
