"""No release that was not proved yet starts by itself: before the service starts, what was cut off is taken back.

A kill or power cut may leave unit and ``current`` of the release to be. Under systemd the guard is a unit of its own
that each start of the service, at boot or after a crash, pulls in and waits for; without it a link that the service's
script follows. Either runs the release that was in force before, and is there only as long as ``pending.json`` may
say "switching". While the command that is at the change lives, it holds the lock, and the guard ends at once.
"""

from __future__ import annotations

import os
from pathlib import Path

from sampan import i18n
from sampan.errors import ExitCode
from sampan.install import disk
from sampan.install.journal import NAME, Pending
from sampan.install.machine import Machine
from sampan.install.model import SCRIPT, unit_name

LINK = ".before"  # in the prefix, for the script alone: the release that was in force
_INSIDE = "SAMPAN_GUARD"  # in the guard's own environment
_SECONDS = 900  # then the service starts all the same


def unit_file(machine: Machine, name: str) -> Path:
    """The guard's unit, beside the service's. No service has such a name: theirs begin with ``sampan-``."""
    return machine.unit_file(name).with_name(f"sampan_recover-{name}.service")


def arm(prefix: Path, pending: Pending, machine: Machine) -> None:
    """From now on a start takes the change back first; nothing where no service was there before. Raises OSError."""
    if pending.unit is None or pending.current is None:
        return
    if pending.scope == SCRIPT:
        disk.point(prefix / LINK, pending.current)
        return
    path = unit_file(machine, pending.name)
    disk.write(path, _text(prefix, pending, pending.current).encode())
    link = _wanted(machine, pending.name)
    disk.make_folders(link.parent)
    disk.point(link, str(path))
    machine.attempt(*machine.manage(pending.name, "daemon-reload"))  # it must know before anything is switched


def disarm(prefix: Path, name: str, machine: Machine) -> None:
    """The change is settled: nothing of the guard stays. Raises OSError."""
    if machine.scope == SCRIPT:
        _remove(prefix / LINK)
        return
    link, path = _wanted(machine, name), unit_file(machine, name)
    removed = [_remove(link), _remove(path)]
    disk.remove_empty((link.parent,))
    if path.parent.is_dir():
        disk.sweep(path)
    if any(removed) and _INSIDE not in os.environ:  # systemd warns of a unit that takes itself away
        machine.attempt(*machine.manage(name, "daemon-reload"))


def _remove(path: Path) -> bool:
    """Take it away for good, with what a kill left of making it; whether it was there."""
    found = [one for one in (path.with_name(f".{path.name}.new"), path) if os.path.lexists(one)]
    for one in found:
        one.unlink()
        disk.sync_folder(path.parent)
    return bool(found)


def _wanted(machine: Machine, name: str) -> Path:
    """What makes each start of the service start the guard."""
    guard = unit_file(machine, name)
    return guard.with_name(f"{unit_name(name)}.wants") / guard.name


def _text(prefix: Path, pending: Pending, current: str) -> str:
    place = str(prefix).replace("%", "%%")  # preflight has refused white space and quotes
    return f"""# Written by sampan while releases are being switched; it goes with the end of the change.
[Unit]
Description=sampan: take back the change of {pending.name} that was cut off
ConditionPathExists={place}/{NAME}
RequiresMountsFor={place}
Before={unit_name(pending.name)}

[Service]
Type=oneshot
Environment=SAMPAN_LANG={i18n.language()} {_INSIDE}=1
ExecStart={place}/{current}/sampan recover --prefix {place}
# the change is still under way
SuccessExitStatus={int(ExitCode.BUSY)}
TimeoutStartSec={_SECONDS}
"""
