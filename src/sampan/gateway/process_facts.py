"""What the kernel says of a process: memory, CPU, throttling by a quota. None where it does not say."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_SELF_CGROUP = Path("/proc/self/cgroup")


def resident_bytes(process: Path) -> int | None:
    """Resident memory of ``/proc/PID``."""
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
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
