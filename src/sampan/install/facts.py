"""HostFacts: what preflight must know, gathered once and then only looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from sampan.errors import BadInputError
from sampan.install import disk, release, sums
from sampan.install.machine import Machine, listening_ports, memory, number
from sampan.install.model import RECORD, RELEASES, Installed, unit_name
from sampan.spec import codec
from sampan.spec.plan import Plan


@dataclass(frozen=True)
class HostFacts:
    """``prefix_state``: free (absent or empty), ours, foreign. ``port_owner``: nobody, ours, other.

    ``release_state``: absent, same, damaged (same list, but a file changed) or different. ``unit_prefix_ours`` is
    False where a unit of this name belongs to another prefix. None means unknown.
    """

    root_user: bool
    arch: str
    systemd: int | None
    controllers: frozenset[str]
    memory_total: int | None
    memory_available: int | None
    disk_free: int
    disk_folder: str
    no_exec: bool
    writable: bool
    closed: str | None  # the outermost folder on the way that other users may not enter
    needed: int
    port_owner: str
    prefix_state: str
    record: Installed | None
    release_state: str
    unit_ours: bool


def gather(machine: Machine, bundle: Path, plan: Plan, prefix: Path, port: int) -> HostFacts:
    """Look at the target; change nothing. Raises BadInputError where the bundle has no readable list."""
    record = read_record(prefix)
    systemd = machine.systemd_version()
    state = _release_state(bundle, prefix / RELEASES / str(plan.release))
    folder = disk.existing(prefix)
    space = os.statvfs(folder)
    meminfo = memory(machine.read("proc/meminfo"))
    return HostFacts(
        root_user=os.geteuid() == 0,
        arch=os.uname().machine,
        systemd=systemd,
        controllers=_controllers(machine),
        memory_total=meminfo.get("MemTotal"),
        memory_available=meminfo.get("MemAvailable"),
        disk_free=space.f_bavail * space.f_frsize,
        disk_folder=str(folder),
        no_exec=bool(space.f_flag & os.ST_NOEXEC),
        writable=os.access(folder, os.W_OK | os.X_OK),
        closed=next((str(p) for p in reversed((folder, *folder.parents)) if not p.stat().st_mode & 0o001), None),
        needed=0 if state == "same" else _size(bundle),
        port_owner=_port_owner(machine, port, record, systemd),
        prefix_state=_prefix_state(prefix, record),
        record=record,
        release_state=state,
        unit_ours=_unit_ours(machine, plan.name, prefix),
    )


def read_record(prefix: Path) -> Installed | None:
    """What stands in a prefix of ours; None where the folder is not ours. Raises BadInputError if damaged."""
    path = prefix / RECORD
    if not path.is_file():
        return None
    return replace(codec.load(Installed, path), prefix=str(prefix.absolute()))  # where it is, not where it was


def _prefix_state(prefix: Path, record: Installed | None) -> str:
    if record is not None:
        return "ours"
    if not prefix.exists() or (prefix.is_dir() and not any(prefix.iterdir())):
        return "free"
    return "foreign"


def _release_state(bundle: Path, installed: Path) -> str:
    if not installed.exists():
        return "absent"
    if not release.same_bundle(bundle, installed):
        return "different"
    return "same" if release.intact(installed) else "damaged"


def _size(bundle: Path) -> int:
    files = (bundle / name for name in sums.read(bundle))
    return sum(path.stat().st_size for path in files if path.is_file())


def _controllers(machine: Machine) -> frozenset[str]:
    """The cgroup controllers that are switched on; of v2 from its root, of v1 from /proc/cgroups."""
    unified = machine.read("sys/fs/cgroup/cgroup.controllers").split()
    rows = [line.split() for line in machine.read("proc/cgroups").splitlines() if not line.startswith("#")]
    return frozenset(unified) | {row[0] for row in rows if len(row) == 4 and row[3] == "1"}


def _port_owner(machine: Machine, port: int, record: Installed | None, systemd: int | None) -> str:
    tables = (machine.read("proc/net/tcp"), machine.read("proc/net/tcp6"))
    if port not in listening_ports(tables):
        return "nobody"
    if record is None or systemd is None or not record.service or record.port != port:
        return "other"
    running = number(machine.unit(unit_name(record.name)), "MainPID")
    return "ours" if running else "other"


def _unit_ours(machine: Machine, name: str, prefix: Path) -> bool:
    text = machine.read(f"etc/systemd/system/{unit_name(name)}")
    return not text or f"ExecStart={str(prefix).replace('%', '%%')}/current/sampan " in text


def plan_of(bundle: Path) -> Plan:
    """The plan that travels in a bundle or release. Raises BadInputError where the folder is no bundle."""
    path = bundle / "plan.json"
    if not path.is_file():
        raise BadInputError("install.no-bundle", path=str(bundle))
    return codec.load(Plan, path)
