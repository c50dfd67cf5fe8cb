"""Limits, disks, swap and ports: texts of /proc, pure parsers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from sampan.spec.target import DiskFacts, LimitsFacts
from sampan.survey.files import read_text

FOLDERS = ("/", "/tmp", "/opt", "/home", "/var")  # noqa: S108  (looked at, not written to)


class Mount(NamedTuple):
    """One line of /proc/mounts."""

    point: str
    filesystem: str
    options: frozenset[str]


def limits(text: str) -> LimitsFacts:
    """/proc/self/limits; -1 means: no limit."""
    return LimitsFacts(
        memlock=_soft(text, "locked memory"), nofile=_soft(text, "open files"), nproc=_soft(text, "processes")
    )


def _soft(text: str, name: str) -> int | None:
    found = re.search(rf"^Max {name} +(unlimited|\d+) ", text, re.MULTILINE)
    if found is None:
        return None
    return -1 if found[1] == "unlimited" else int(found[1])


def kilobytes(meminfo: str, name: str) -> int | None:
    """One line of /proc/meminfo, in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def mounts(text: str) -> tuple[Mount, ...]:
    """/proc/mounts; a blank in a name is written \\040 there (proc_pid_mounts(5))."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 4:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[1])
            found.append(Mount(point, words[2], frozenset(words[3].split(","))))
    return tuple(found)


def mount_of(path: str, table: tuple[Mount, ...]) -> Mount | None:
    """The mount that holds ``path``: the longest fitting point; of several on one point the last counts."""
    best: Mount | None = None
    for mount in table:
        point = mount.point.rstrip("/") + "/"
        if (path.rstrip("/") + "/").startswith(point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def disks(root: Path, *, sizes: bool = False) -> tuple[DiskFacts, ...]:
    """What lies below the folders that an installation uses; ``sizes`` also asks how much is free (statvfs(3))."""
    table = mounts(read_text(root / "proc/self/mounts") or read_text(root / "proc/mounts"))
    found = []
    for folder in FOLDERS:
        path = root / folder.lstrip("/")
        mount = mount_of(str(path.resolve()) if root == Path("/") else folder, table)
        if mount is None or not path.is_dir():
            continue
        size, free = _space(path) if sizes else (None, None)
        found.append(
            DiskFacts(
                path=folder,
                mount=mount.point,
                filesystem=mount.filesystem,
                noexec="noexec" in mount.options,
                nosuid="nosuid" in mount.options,
                read_only="ro" in mount.options,
                size_bytes=size,
                free_bytes=free,
            )
        )
    return tuple(found)


def _space(path: Path) -> tuple[int | None, int | None]:
    try:
        found = os.statvfs(path)
    except OSError:
        return None, None
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def listening_ports(*tables: str) -> tuple[int, ...]:
    """TCP ports in state LISTEN (0A) of /proc/net/tcp and tcp6 (Documentation/networking/proc_net_tcp)."""
    found = (
        int(port, 16)
        for table in tables
        for port in re.findall(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]+ 0A ", table, re.MULTILINE)
    )
    return tuple(sorted(set(found)))
