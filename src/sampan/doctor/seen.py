"""Readers of what the machine's files and tools say: pure, given what was read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_LIMITS = {"Max locked memory": "memlock", "Max open files": "nofile", "Max processes": "nproc"}
_EXEC_CONTROL = re.compile(r"(?i)exec control\s*[:：]\s*(\w+)")
_SELINUX = {"1": "enforcing", "0": "permissive", "": "absent"}

Read = Callable[[str], str]
Run = Callable[..., "str | None"]


def properties(output: str) -> dict[str, str]:
    """``systemctl show``: one ``Key=value`` a line."""
    pairs = (line.partition("=") for line in output.splitlines() if "=" in line)
    return {key: value.strip() for key, _, value in pairs}


def limits(text: str) -> dict[str, object]:
    """The soft limits of /proc/PID/limits: bytes, files, processes, or ``unlimited``."""
    found: dict[str, object] = {}
    for line in text.splitlines():
        for title, name in _LIMITS.items():
            if line.startswith(title):
                found[name] = line[len(title) :].split()[0]
    return found


def listening(tables: Sequence[str]) -> frozenset[int]:
    """TCP ports with a listener, from /proc/net/tcp and tcp6."""
    rows = (line.split() for table in tables for line in table.splitlines()[1:])
    return frozenset(int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == "0A")


def mandatory(read: Read, run: Run) -> dict[str, object]:
    """State of the three that refuse to run files: each ``absent`` where the machine does not have it."""
    selinux = read("/sys/fs/selinux/enforce").strip()
    status = run("getstatus")
    match = _EXEC_CONTROL.search(status or "")
    active = (run("systemctl", "is-active", "fapolicyd") or "").strip().splitlines()
    return {
        "selinux": _SELINUX.get(selinux, selinux),
        "kysec": match[1].lower() if match else "absent" if status is None else None,
        "fapolicyd": "active" if active[:1] == ["active"] else "absent",
    }


def cgroups(read: Read, group: str) -> dict[str, object]:
    """OOM kills and throttling that the service's cgroup counted; cgroup v2 first, then v1."""
    if not group.strip("/"):
        return {}
    memory = _numbers(read(f"/sys/fs/cgroup{group}/memory.events")) or _numbers(
        read(f"/sys/fs/cgroup/memory{group}/memory.oom_control")
    )
    cpu = _numbers(read(f"/sys/fs/cgroup{group}/cpu.stat")) or _numbers(read(f"/sys/fs/cgroup/cpu{group}/cpu.stat"))
    periods = cpu.get("nr_periods", 0)
    return {
        "oom_kills": memory.get("oom_kill"),
        "throttled_percent": cpu.get("nr_throttled", 0) * 100 // periods if periods else None,
    }


def _numbers(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in pairs if len(words) == 2 and words[1].isdecimal()}
