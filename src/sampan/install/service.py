"""What can be asked of, and done to, an installed service: status, start, restart, stop."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sampan.errors import MissingToolError, ServiceError, UsageError
from sampan.install import journal
from sampan.install.foreground import at, foreground, foreground_pid
from sampan.install.lookup import Found
from sampan.install.machine import Machine, number
from sampan.install.model import (
    SCRIPT,
    SYSTEM,
    USER,
    HealthProbe,
    ServiceStatus,
    probe_host,
)

_END_SECONDS = 60.0
_MODES = {SYSTEM: "systemd", USER: "user", SCRIPT: "script"}
_UNKNOWN = ("", "n/a", "[not set]")


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
