"""What the kernel says of a process: memory, CPU, throttling by a quota. None where it does not say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CGROUP = Path("/sys/fs/cgroup")
_SELF_CGROUP = Path("/proc/self/cgroup")


class _Files(NamedTuple):
    """Of a memory control group: its limit, what it uses, and what of that the kernel would give up first."""

    limit: str
    used: str
    cold: str


_V1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = _Files("memory.max", "memory.current", "inactive_file")


def resident_bytes(process: Path) -> int | None:
    """Resident memory of ``/proc/PID``.

    From ``status``, which gives kilobytes: ``statm`` counts the kernel's pages, and an emulated program is told
    another page size than the kernel's.
    """
    try:
        lines = (process / "status").read_text(errors="replace").splitlines()
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:")), None)
    except (OSError, IndexError, ValueError):
        return None


def cpu_seconds(process: Path) -> float | None:
    """User and system time of ``/proc/PID``."""
    try:
        fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


def throttled_seconds(cgroups: Path = _CGROUP, own: Path = _SELF_CGROUP) -> float | None:
    """How long a CPU quota kept this control group waiting: ``cpu.stat`` of cgroups v2 or v1."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if controllers and "cpu" not in names:
            continue
        base = cgroups / controllers if controllers else cgroups
        found = _stat(base / path.lstrip("/") / "cpu.stat")
        if found is not None:
            return found
    return None


def _stat(path: Path) -> float | None:
    try:
        values = dict(line.split() for line in path.read_text().splitlines())
    except (OSError, ValueError):
        return None
    if "throttled_usec" in values:
        return int(values["throttled_usec"]) / 1e6
    return int(values["throttled_time"]) / 1e9 if "throttled_time" in values else None


def free_bytes(
    meminfo: Path = Path("/proc/meminfo"), cgroups: Path = _CGROUP, own: Path = _SELF_CGROUP
) -> int | None:
    """Memory that could still be taken: of the machine, and within the limits of this control group (v2 or v1).

    Files that the kernel would give up (of a control group: those not used lately) count as free.
    """
    found = [_machine_free(meminfo), *_group_free(cgroups, own)]
    return min((each for each in found if each is not None), default=None)


def _machine_free(meminfo: Path) -> int | None:
    for line in _text(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _group_free(cgroups: Path, own: Path) -> Iterator[int]:
    """Of this process's groups and all above them, where they have a limit."""
    for line in _text(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base, names = (cgroups / controllers, _V1) if controllers else (cgroups, _V2)
        for group in (base / path.lstrip("/"), *(base / path.lstrip("/")).parents):
            limit, used = _text(group / names.limit).strip(), _text(group / names.used).strip()
            if limit.isdigit() and used.isdigit():
                stat = dict(line.split() for line in _text(group / "memory.stat").splitlines())
                yield int(limit) - int(used) + int(stat.get(names.cold, 0))
            if group == base:
                break


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
