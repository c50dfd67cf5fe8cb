"""Readers of what the machine's files and tools say: pure, given what was read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

_LIMITS = {"Max locked memory": "memlock", "Max open files": "nofile", "Max processes": "nproc"}
_LAST = 2  # lines
_BOOTED = re.compile(r"\[ {0,8}(\d{1,12}\.\d{1,9})\]")
_EXEC_CONTROL = re.compile(r"(?i)exec control\s*[:：]\s*(\w+)")
_SELINUX = {"1": "enforcing", "0": "permissive", "": "absent"}

Read = Callable[[str], str]
Run = Callable[..., "str | None"]


def properties(output: str) -> dict[str, str]:
    """``systemctl show``: one ``Key=value`` a line."""
    pairs = (line.partition("=") for line in output.splitlines() if "=" in line)
    return {key: value.strip() for key, _, value in pairs}


def last_words(journal: str) -> str:
    """What the program itself printed last, of ``DATE HOST PROGRAM[PID]: TEXT`` lines; systemd's own are left out."""
    lines = (line.split(" ", 2)[-1].partition(": ") for line in journal.splitlines())
    said = [text.strip() for who, _, text in lines if text.strip() and not who.startswith("systemd")]
    return " / ".join(line[:200] for line in said[-_LAST:])


def booted(line: str) -> float:
    """Seconds after boot of a line of the kernel's log, ``[ 12.345678] …``; infinite where it does not say."""
    match = _BOOTED.match(line)
    return float(match[1]) if match else math.inf


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
    """OOM kills, quota and throttling that the service's cgroup counted; cgroup v2 first, then v1."""
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
        "cpu_quota": _quota(read, group),
    }


def _quota(read: Read, group: str) -> str | None:
    """CPUs that the service's own group may use; None where it has no quota."""
    both = read(f"/sys/fs/cgroup{group}/cpu.max").split() or [
        read(f"/sys/fs/cgroup/cpu{group}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")
    ]
    if len(both) != 2 or not all(each.isdecimal() for each in both) or int(both[1]) == 0:
        return None
    return f"{int(both[0]) / int(both[1]):g}"


def _numbers(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in pairs if len(words) == 2 and words[1].isdecimal()}
