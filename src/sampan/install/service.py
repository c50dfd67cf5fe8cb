"""What can be asked of, and done to, an installed service: status, start, restart, stop."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sampan.errors import MissingToolError, ServiceError, UsageError
from sampan.install import journal
from sampan.install.facts import read_record
from sampan.install.machine import Machine, number
from sampan.install.model import (
    DEFAULT_HOME,
    RECORD,
    RELEASES,
    SCRIPT,
    SYSTEM,
    USER,
    HealthProbe,
    Installed,
    ServiceStatus,
    probe_host,
    user_home,
    user_name,
)
from sampan.install.source import plan_of
from sampan.spec.ports import Runner

PID_FILE = "sampan.pid"  # in the run folder of a foreground server
_END_SECONDS = 60.0
_LAST_PORT = 65535
_MODES = {SYSTEM: "systemd", USER: "user", SCRIPT: "script"}
_UNKNOWN = ("", "n/a", "[not set]")


@dataclass(frozen=True)
class Found:
    """The service that a command means. ``record`` None: nothing is installed, only a bundle was unpacked."""

    name: str
    port: int
    host: str
    record: Installed | None

    @property
    def certificate(self) -> str | None:
        """What an installed service shows of itself over TLS; None where it speaks plain HTTP."""
        return self.record.certificate if self.record is not None and self.record.service else None

    @property
    def has_unit(self) -> bool:
        """Whether systemd runs it."""
        return self.record is not None and self.record.service

    def machine(self, runner: Runner, root: Path = Path("/")) -> Machine:
        """The machine, with the way in which this service is kept alive on it."""
        prefix = Path(self.record.prefix) if self.record else None
        return Machine(runner, root, self.record.scope if self.record else SYSTEM, prefix)


def find(bundle: Path | None, *, name: str | None = None, prefix: Path | None = None) -> Found:
    """The service of ``prefix``, else of ``/opt/sampan/<name>`` or the user's own of that name, else of the
    installation that ``bundle`` lies in, else of where ``bundle`` would be installed. Raises UsageError where there
    is none of the first two.
    """
    places = _places(bundle, name, prefix)
    for place in places:
        record = read_record(place) or _begun(place)
        if record is not None:
            return _of(record)
    if bundle is None or prefix or name:
        raise UsageError("install.not-installed", prefix=str(places[0]))
    plan = plan_of(bundle.resolve())
    return Found(plan.name, plan.port, "127.0.0.1", None)


def home_of(bundle: Path | None, *, name: str | None = None, prefix: Path | None = None) -> Path:
    """The prefix that a change means: one with a record or with something under way. Raises UsageError."""
    places = _places(bundle, name, prefix)
    found = next(
        (place for place in places if any((place / file).is_file() for file in (RECORD, journal.NAME))), None
    )
    if found is None:
        raise UsageError("install.not-installed", prefix=str(places[0]))
    return found.absolute()


def _begun(prefix: Path) -> Installed | None:
    """A first installation that was killed: what of it would have to go."""
    pending = journal.read(prefix)
    if pending is None or pending.before is not None:
        return pending.before if pending else None
    user = user_name(pending.name) if pending.fresh_user else None
    return Installed(
        name=pending.name,
        release=pending.release,
        state="installing",
        prefix=str(prefix.absolute()),
        service=pending.service,
        host="127.0.0.1",
        port=0,
        user=user,
        user_created=pending.fresh_user,
        created=pending.created,
        scope=pending.scope,
        keys=pending.keys,
    )


def _places(bundle: Path | None, name: str | None, prefix: Path | None) -> tuple[Path, ...]:
    if prefix is not None:
        return (prefix,)
    if name is None and bundle is None:
        raise UsageError("install.which")
    root = bundle.resolve() if bundle else None
    own = (root.parent.parent,) if root and not name and root.parent.name == RELEASES else ()
    service = name or plan_of(root or Path()).name
    return (*own, DEFAULT_HOME / service, user_home() / service)


def _of(record: Installed) -> Found:
    return Found(record.name, record.port, record.host, record)


def status(found: Found, machine: Machine, health: HealthProbe, run_folder: Path) -> ServiceStatus:
    """How it stands. ``run_folder`` is where a foreground server of this bundle keeps its pid file."""
    server = None if found.has_unit else foreground(machine, run_folder)
    if server is not None:
        found = at(found, server)
    asked = health(probe_host(found.host), found.port, found.certificate is not None)
    unit = machine.state(found.name) if found.has_unit else {}
    pid = number(unit, "MainPID") if found.has_unit else server and server.pid
    record = found.record
    return ServiceStatus(
        name=found.name,
        release=record.release if record else None,
        prefix=record.prefix if record else None,
        mode=_MODES[record.scope] if record and record.service else "foreground" if pid else "files",
        state=unit.get("ActiveState", "active" if pid else "inactive"),
        enabled=unit.get("UnitFileState") == "enabled" if found.has_unit else None,
        pid=pid or None,
        since=_since(unit),
        memory_bytes=number(unit, "MemoryCurrent"),
        restarts=number(unit, "NRestarts"),
        host=found.host,
        port=found.port,
        health=asked.state,
        health_detail=asked.detail,
        pending=_under_way(found),
        scheme="https" if found.certificate else "http",
    )


def _under_way(found: Found) -> str | None:
    """A change that another process is at, or that was cut off: its verb."""
    pending = journal.read(Path(found.record.prefix)) if found.record else None
    return pending.verb if pending else None


def _since(unit: Mapping[str, str]) -> str | None:
    """When the present state was entered: a service that was stopped shows since when it is."""
    moment = "InactiveEnterTimestamp" if unit.get("ActiveState") in ("inactive", "failed") else "ActiveEnterTimestamp"
    return _known(unit.get(moment, ""))


def _known(value: str) -> str | None:
    return None if value in _UNKNOWN else value


def start(found: Found, machine: Machine) -> None:
    """Start the unit and return once systemd calls it active. Raises UsageError without a unit, ServiceError."""
    _need_unit(found)
    _systemctl(machine, "start", found)


def restart(found: Found, machine: Machine) -> None:
    """Stop and start the unit. Raises UsageError without a unit, ServiceError."""
    _need_unit(found)
    _systemctl(machine, "restart", found)


def stop(found: Found, machine: Machine, run_folder: Path) -> bool:
    """Stop the unit, or end the foreground server; False where nothing ran. Raises ServiceError."""
    if found.has_unit:
        was = machine.state(found.name).get("ActiveState")
        _systemctl(machine, "stop", found)
        return was not in ("inactive", "failed")
    pid = foreground_pid(machine, run_folder)
    if pid is None:
        return False
    if not machine.end_process(pid, _END_SECONDS):
        raise ServiceError("install.will-not-end", pid=pid, seconds=int(_END_SECONDS))
    return True


def _need_unit(found: Found) -> None:
    if not found.has_unit:
        where = f"{found.record.prefix}/current/start.sh" if found.record else "./start.sh"
        raise UsageError("install.no-unit", name=found.name, command=where)


def _systemctl(machine: Machine, verb: str, found: Found) -> None:
    command = machine.manage(found.name, verb)
    done = machine.run(*command, timeout=None)
    if done.returncode != 0:
        if found.record is not None and found.record.scope == SYSTEM and os.geteuid() != 0:
            raise MissingToolError("install.service-needs-root", verb=verb, name=found.name)
        log = machine.journal(found.name)
        output = "\n".join(filter(None, (done.output.strip(), log))) or "-"
        raise ServiceError("install.command", command=" ".join(command), code=done.returncode, output=output)


@dataclass(frozen=True)
class Foreground:
    """A running foreground server; ``host`` and ``port`` None where its pid file does not say."""

    pid: int
    host: str | None = None
    port: int | None = None


def pid_text(server: Foreground) -> str:
    """What stands in the pid file: process, host and port, a line each."""
    return f"{server.pid}\n{server.host}\n{server.port}\n"


def foreground(machine: Machine, run_folder: Path) -> Foreground | None:
    """The server that the pid file names, if that process still is a sampan server."""
    try:
        lines = (run_folder / PID_FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    pid, host, port = (*(line.strip() for line in lines[:3]), "", "", "")[:3]
    if not pid.isdecimal() or not machine.alive(int(pid)):
        return None
    words = machine.read(f"proc/{pid}/cmdline").split("\0")
    if "serve" not in words or not any("sampan" in word for word in words):
        return None
    known = bool(host) and port.isdecimal() and 0 < int(port) <= _LAST_PORT
    return Foreground(int(pid), host, int(port)) if known else Foreground(int(pid))


def foreground_pid(machine: Machine, run_folder: Path) -> int | None:
    """The process that the pid file names, if it still is a sampan server."""
    server = foreground(machine, run_folder)
    return server.pid if server else None


def at(found: Found, server: Foreground) -> Found:
    """The service, where its foreground server really listens."""
    return replace(found, host=server.host or found.host, port=server.port or found.port)
