"""Run a command within limits, nothing installed: in a scope of systemd, else by what any process may set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sampan.install.model import OwnLimits

_SCOPES_SINCE = 205  # systemd-run --scope
_MIB = 1 << 20


@dataclass(frozen=True)
class Bounds:
    """How a command is to be started. ``command``: the words. The rest is for this process to take on before:

    ``cpus`` it may run on, ``data_bytes`` of own memory a process (RLIMIT_DATA; mapped weights do not count).
    """

    command: tuple[str, ...]
    cpus: frozenset[int] | None = None
    data_bytes: int | None = None


def bounds(
    command: Sequence[str], own: OwnLimits, *, systemd: int | None, root: bool, delegated: bool, free: frozenset[int]
) -> Bounds:
    """``systemd``: version of the one that would make the scope, None for none; ``delegated``: it may set limits in
    cgroups; ``free``: the CPUs that this process may use.
    """
    if systemd is not None and systemd >= _SCOPES_SINCE and (root or delegated):
        return Bounds((*_scope(own, systemd, root), *command), _only(own, free))
    return Bounds(tuple(command), _only(own, free) or _some(own, free), own.memory_bytes)


def _scope(own: OwnLimits, systemd: int, root: bool) -> tuple[str, ...]:
    words = ["systemd-run", *([] if root else ["--user"]), "--scope", "--quiet"]
    if own.memory_bytes is not None:
        words += ["-p", f"{'MemoryMax' if systemd >= 231 else 'MemoryLimit'}={own.memory_bytes // _MIB}M"]
    if own.cpu_percent is not None:
        words += ["-p", f"CPUQuota={own.cpu_percent}%"]
    return (*words, "--")


def parse_cpus(text: str) -> frozenset[int]:
    """The numbers of a list such as ``0-3,8``. Raises ValueError."""
    parts = (part.partition("-") for part in text.split(","))
    return frozenset(cpu for low, _, high in parts for cpu in range(int(low), int(high or low) + 1))


def _only(own: OwnLimits, free: frozenset[int]) -> frozenset[int] | None:
    return parse_cpus(own.cpus) & free or None if own.cpus else None


def _some(own: OwnLimits, free: frozenset[int]) -> frozenset[int] | None:
    """As many whole CPUs as the quota would give; at least one."""
    if own.cpu_percent is None:
        return None
    return frozenset(sorted(free)[: max(1, own.cpu_percent // 100)])
