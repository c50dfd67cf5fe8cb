"""Memory limit and CPU quota that the control groups put on this process, v1 and v2.

Source: kernel Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst, scheduler/sched-bwc.rst. A limit of
any ancestor holds, so the smallest one on the way up counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from sampan.survey.files import read_text

# v1 prints "no limit" as the largest multiple of the page size below 2**63, v2 as the word "max".
_NO_LIMIT = 1 << 60
Number = TypeVar("Number", int, float)


class Limits(NamedTuple):
    """``cgroup`` is 1, 2 or None; ``cpu_quota`` is in CPUs' worth of time; None means: not limited or unknown."""

    cgroup: int | None
    memory_bytes: int | None
    cpu_quota: float | None


def read(root: Path) -> Limits:
    """The limits in force for this process."""
    top = root / "sys/fs/cgroup"
    paths = memberships(read_text(root / "proc/self/cgroup"))
    if (top / "cgroup.controllers").is_file():
        own = paths.get("", "/")
        return Limits(2, _least(top, own, _memory_v2), _least(top, own, _quota_v2))
    memory = top / "memory"
    cpu = next((top / name for name in ("cpu,cpuacct", "cpu") if (top / name).is_dir()), top / "cpu")
    if not memory.is_dir() and not cpu.is_dir():
        return Limits(None, None, None)
    return Limits(
        1, _least(memory, paths.get("memory", "/"), _memory_v1), _least(cpu, paths.get("cpu", "/"), _quota_v1)
    )


def memberships(text: str) -> dict[str, str]:
    """/proc/self/cgroup as {controller: path}; the unified hierarchy has the name ``""``."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if separator:
            found.update(dict.fromkeys(controllers.split(","), path))
    return found


def memory_limit(text: str) -> int | None:
    """memory.max or memory.limit_in_bytes; None for no limit."""
    word = text.strip()
    return int(word) if word.isdigit() and int(word) < _NO_LIMIT else None


def quota(text: str) -> float | None:
    """``cpu.max`` or "cfs_quota_us cfs_period_us": CPUs' worth of time; None for no limit."""
    words = text.split()
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None  # "max 100000", "-1 100000", or nothing
    return int(words[0]) / int(words[1])


def _memory_v1(group: Path) -> int | None:
    return memory_limit(read_text(group / "memory.limit_in_bytes"))


def _memory_v2(group: Path) -> int | None:
    return memory_limit(read_text(group / "memory.max"))


def _quota_v1(group: Path) -> float | None:
    return quota(f"{read_text(group / 'cpu.cfs_quota_us')} {read_text(group / 'cpu.cfs_period_us')}")


def _quota_v2(group: Path) -> float | None:
    return quota(read_text(group / "cpu.max"))


def _least(top: Path, own: str, limit: Callable[[Path], Number | None]) -> Number | None:
    found = [value for value in map(limit, _groups(top, own)) if value is not None]
    return min(found) if found else None


def _groups(top: Path, own: str) -> Iterator[Path]:
    """Our group and its ancestors. In a container the path may be the host's and not exist: then the top counts."""
    path = PurePosixPath(own)
    for part in (path, *path.parents):
        yield top / str(part).lstrip("/")
