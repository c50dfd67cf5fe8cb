"""HostFacts: what preflight must know, gathered once and then only looked at."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from sampan.install import disk, journal, lock, place, release
from sampan.install.machine import Machine, listening_ports, memory, number
from sampan.install.model import CONFIG, RECORD, RELEASES, SCRIPT, Installed
from sampan.install.source import Source
from sampan.spec import codec

_OURS = frozenset((lock.NAME, RELEASES, CONFIG))


@dataclass(frozen=True)
class HostFacts:
    """``prefix_state``: free (absent or empty), ours, foreign. ``port_owner``: nobody, ours, other.

    ``no_exec``: the folder from which nothing may run. ``release_state``: absent, same, damaged (same list, but a
    file changed) or different. ``unit_ours`` is False where a unit of this name belongs to another prefix. None means
    unknown.
    """

    root_user: bool
    arch: str
    systemd: int | None
    controllers: frozenset[str]
    memory_total: int | None
    memory_available: int | None
    disk_free: int
    disk_folder: str
    no_exec: str | None
    writable: bool
    closed: str | None  # the outermost folder on the way that other users may not enter
    needed: int
    port_owner: str
    prefix_state: str
    record: Installed | None
    release_state: str
    unit_ours: bool
    page_size: int = 4096
    memory_limit: int | None = None  # of a cgroup above the services, in bytes
    port_holder: str | None = None  # another service that is set to this port
    copies: tuple[str, ...] = ()  # other places where a service of this name is installed
    clock: float = 0.0  # seconds since 1970
    host: str = "127.0.0.1"  # where the service will listen
    key_file: str = ""
    keys: str = "absent"  # see key_file.state
    tls: tuple[str, str] | None = None  # see tls_files.unfit


def gather(machine: Machine, given: Source, prefix: Path, port: int, *, state: str | None = None) -> HostFacts:
    """Look at the target; change nothing. ``state`` of the release, where it is known: its files are not read then.

    Raises BadInputError where an installed release has no readable list.
    """
    plan, record = given.plan, read_record(prefix)
    systemd = machine.systemd_version()
    state = state or _release_state(given.listed, prefix / RELEASES / str(plan.release))
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
        no_exec=place.no_exec(prefix, folder),
        writable=os.access(folder, os.W_OK | os.X_OK),
        closed=place.closed(folder),
        needed=0 if state == "same" else given.room(folder),
        port_owner=_port_owner(machine, port, record, systemd),
        prefix_state=_prefix_state(prefix, record),
        record=record,
        release_state=state,
        unit_ours=_unit_ours(machine, plan.name, prefix),
        page_size=os.sysconf("SC_PAGESIZE"),
        memory_limit=place.memory_limit(machine),
        port_holder=place.port_of_others(machine, plan.name, port),
        copies=place.other_copies(plan.name, prefix),
        clock=time.time(),
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
    if not prefix.exists() or (prefix.is_dir() and all(_left_by_a_kill(path.name) for path in prefix.iterdir())):
        return "free"
    return "foreign"


def _left_by_a_kill(name: str) -> bool:
    """What a killed first installation may leave behind in its prefix."""
    return name in _OURS or name.startswith(f".{journal.NAME}.")


def _release_state(listed: bytes, installed: Path) -> str:
    if not installed.exists():
        return "absent"
    if not release.same_bundle(listed, installed):
        return "different"
    return "same" if release.intact(installed) else "damaged"


def _controllers(machine: Machine) -> frozenset[str]:
    """The cgroup controllers that are switched on; of v2 from its root, of v1 from /proc/cgroups."""
    unified = machine.read("sys/fs/cgroup/cgroup.controllers").split()
    rows = [line.split() for line in machine.read("proc/cgroups").splitlines() if not line.startswith("#")]
    return frozenset(unified) | {row[0] for row in rows if len(row) == 4 and row[3] == "1"}


def _port_owner(machine: Machine, port: int, record: Installed | None, systemd: int | None) -> str:
    tables = (machine.read("proc/net/tcp"), machine.read("proc/net/tcp6"))
    if port not in listening_ports(tables):
        return "nobody"
    if record is None or not record.service or record.port != port:
        return "other"
    if systemd is None and record.scope != SCRIPT:
        return "other"
    running = number(machine.state(record.name), "MainPID")
    return "ours" if running else "other"


def _unit_ours(machine: Machine, name: str, prefix: Path) -> bool:
    if machine.scope == SCRIPT:  # in our own prefix
        return True
    path = machine.unit_file(name)
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return not text or f"ExecStart={str(prefix).replace('%', '%%')}/current/sampan " in text
