"""Two texts of a unit: what differs, and whether a running process can live with it.

After ``daemon-reload`` systemd goes by the new text for whatever it does itself, and so by the first group from then
on. Everything else is set up before a process is started (systemd.exec(5), systemd.service(5)): the process of a
hand-over, which systemd did not start, has it as its predecessor had.
"""

from __future__ import annotations

#: read when they are needed, or for people
_AT_ANY_TIME = frozenset(
    {"Description", "Documentation", "After", "WantedBy", "StartLimitIntervalSec", "StartLimitInterval"}
    | {"Restart", "RestartSec", "TimeoutStartSec", "TimeoutStopSec", "KillMode", "ExecReload"}
)
#: the memory limit, which a hand-over sets by itself (room.py)
MEMORY = ("MemoryMax", "MemoryLimit")
#: of the control group: set anew by ``daemon-reload``; seen to be so with systemd 247, not looked at with older ones
_OF_THE_GROUP = frozenset(("TasksMax", "CPUQuota"))
_GROUP_SINCE = 247


def for_a_start_only(old: str, new: str, systemd: int | None) -> tuple[str, ...]:
    """The directives that differ and would hold only after a restart, by name."""
    before, after = _parsed(old), _parsed(new)
    live = _AT_ANY_TIME.union(MEMORY, _OF_THE_GROUP if (systemd or 0) >= _GROUP_SINCE else ())
    differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    return tuple(sorted(differing - live))


def memory_limit(text: str) -> tuple[str, int] | None:
    """The directive and its bytes, as ``unit.render`` writes it; None where there is none."""
    found = _parsed(text)
    for key in MEMORY:
        value = found.get(key, [""])[-1]
        if value.endswith("M") and value[:-1].isdecimal():
            return key, int(value[:-1]) << 20
    return None


def _parsed(text: str) -> dict[str, list[str]]:
    """Directive -> its values in order. No name stands in two sections of our units."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, is_one, value = line.partition("=")
        if is_one and not line.startswith(("#", ";")):
            found.setdefault(key.strip(), []).append(value.strip())
    return found
