"""Memory for two releases at a time: the unit's limit is for one, and is raised while the second takes over.

It is raised by a drop-in of systemd's own (``set-property --runtime``), which holds at once and is gone after a boot.
``pending.json`` says that it was, so whoever comes after a kill puts it right.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from sampan.install import unit_diff
from sampan.install.disk import remove_empty
from sampan.install.machine import Machine, number
from sampan.install.model import USER, unit_name

_MIB = 1 << 20
_LOOKS = 10  # systemd sets a limit right after it has answered


def is_ours(machine: Machine, name: str, text: str) -> bool:
    """Whether the limit in force is the one of the unit's ``text``, and not an administrator's own."""
    limit = unit_diff.memory_limit(text)
    if limit is None or any(_drop_ins(machine, name)):
        return False
    shown = machine.state(name)
    return number(shown, limit[0]) == limit[1]


def lift(machine: Machine, name: str, text: str, more: int) -> None:
    """Let the service use ``more`` bytes beside what the unit's ``text`` allows. Raises ServiceError."""
    limit = unit_diff.memory_limit(text)
    if limit is not None:
        _set(machine, name, limit[0], limit[1] + more)


def settle(machine: Machine, name: str) -> None:
    """The limit of the unit file again, in the kernel too. Harmless where it holds. Raises ServiceError, OSError."""
    there = tuple(_drop_ins(machine, name))
    path = machine.unit_file(name)
    limit = unit_diff.memory_limit(path.read_text(encoding="utf-8")) if path.is_file() else None
    if there and limit is not None:
        _set(machine, name, *limit)
    for one in _drop_ins(machine, name):
        one.unlink(missing_ok=True)
    remove_empty(tuple(_folders(machine, name)))
    if there:
        machine.must(*machine.manage(name, "daemon-reload"))


def enough(free: Callable[[], int | None], needed: int, sleep: Callable[[float], None]) -> int | None:
    """None where ``needed`` bytes are free, or nobody can tell; else how many are."""
    found = free()
    for _ in range(_LOOKS):
        if found is None or found >= needed:
            return None
        sleep(0.1)
        found = free()
    return found


def _set(machine: Machine, name: str, key: str, limit: int) -> None:
    machine.must(*machine.manage(name, "set-property"), "--runtime", f"{key}={-(-limit // _MIB)}M")


def _drop_ins(machine: Machine, name: str) -> Iterator[Path]:
    for folder in _folders(machine, name):
        for key in unit_diff.MEMORY:
            yield from folder.glob(f"*-{key}.conf")


def _folders(machine: Machine, name: str) -> Iterator[Path]:
    """Where ``set-property --runtime`` writes; before systemd 236 that is beside other drop-ins."""
    if machine.scope == USER:
        run, kinds = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"), ("user.control", "user")
    else:
        run, kinds = machine.root / "run", ("system.control", "system")
    return (run / "systemd" / kind / f"{unit_name(name)}.d" for kind in kinds)
