"""What can be seen on the machine itself: facts for conditions, and texts to be read like any other log.

Nothing is changed. Files come from below ``root``, commands through the runner, health through the probe; what
cannot be seen is left out, so that conditions on it stay unknown.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sampan.doctor.conditions import Fact
from sampan.doctor.diagnose import Text
from sampan.doctor.seen import cgroups, limits, listening, mandatory, properties
from sampan.errors import MissingToolError
from sampan.spec.ports import Runner

#: (host, port, through the environment's proxy) -> ready, another state, or what went wrong
HealthProbe = Callable[[str, int, bool], str]

_SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"  # a plain `su` leaves sbin out of PATH
_OURS = re.compile(r"llama-server|sampan|\bld\.so\b")  # the private Python runs under its own loader
_UNIT = "ActiveState,Result,ExecMainStatus,NRestarts,MainPID,ControlGroup"
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_TAIL = 1 << 20


@dataclass(frozen=True)
class Service:
    """What is installed, or unpacked, here."""

    prefix: Path | None = None
    unit: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None


@dataclass(frozen=True)
class Machine:
    """The doors to the machine. ``root`` is laid before /proc, /sys and /run; never before the prefix."""

    runner: Runner
    health: HealthProbe
    environ: Mapping[str, str]
    root: Path = Path("/")

    def run(self, *argv: str) -> str | None:
        """What a tool prints; None where there is no such tool."""
        path = f"{self.environ.get('PATH', '')}:{_SBIN}"
        try:
            return self.runner.run(argv, env={"PATH": path, "LC_ALL": "C"}, timeout=20.0).output
        except MissingToolError:
            return None

    def read(self, path: str) -> str:
        """A file below ``root``; empty where it is missing or closed."""
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


@dataclass
class Seen:
    """``texts`` are to be scanned: the unit's journal and the kernel's lines on our programs."""

    facts: dict[str, Fact] = field(default_factory=dict)
    texts: list[Text] = field(default_factory=list)

    def add(self, where: str, found: Mapping[str, object]) -> None:
        """Facts that one place told; empty ones are left out."""
        told = {name: Fact(str(value), where) for name, value in found.items() if value not in (None, "")}
        self.facts.update(told)


def look(machine: Machine, service: Service) -> Seen:
    """Everything that can be seen now."""
    seen = Seen()
    seen.add("--here", {"here": "yes"})
    unit = _unit(machine, service, seen)
    pid = unit.get("MainPID", "0")
    own = f"/proc/{pid}" if pid not in ("", "0") else "/proc/self"
    seen.add(f"{own}/limits", limits(machine.read(f"{own}/limits")))
    seen.add("cgroup", cgroups(machine.read, unit.get("ControlGroup", "")))
    seen.add("SELinux, KYSEC, fapolicyd", mandatory(machine.read, machine.run))
    seen.add("statvfs", dict(_places(machine, service)))
    seen.add("clock", {"clock_year": time.gmtime().tm_year})
    _network(machine, service, unit, seen)
    kernel = machine.run("dmesg") or ""
    ours = "\n".join(line for line in kernel[-_TAIL:].splitlines() if _OURS.search(line))
    _text(seen, "dmesg", ours)
    return seen


def _unit(machine: Machine, service: Service, seen: Seen) -> dict[str, str]:
    """State of the unit, and its journal among the texts."""
    if not service.unit:
        return {}
    found = properties(machine.run("systemctl", "show", f"--property={_UNIT}", service.unit) or "")
    seen.add(
        f"systemctl show {service.unit}",
        {
            "unit": service.unit,
            "unit_state": found.get("ActiveState"),
            "unit_result": found.get("Result"),
            "exit_status": found.get("ExecMainStatus"),
            "restarts": found.get("NRestarts"),
        },
    )
    argv = ("journalctl", "--unit", service.unit, "--lines=400", "--no-pager", "--output=short-iso")
    _text(seen, f"journalctl -u {service.unit}", machine.run(*argv) or "")
    return found


def _text(seen: Seen, source: str, text: str) -> None:
    if text.strip():
        seen.texts.append(Text(source, io.BytesIO(text.encode())))


def _places(machine: Machine, service: Service) -> Iterator[tuple[str, object]]:
    """Mount options and free space of the installation and of the temporary folder."""
    temporary = Path(machine.environ.get("TMPDIR") or "/tmp")  # noqa: S108  (looked at, not used)
    for name, place in (("prefix", service.prefix), ("tmp", temporary)):
        if place is None:
            continue
        try:
            found = os.statvfs(place)
        except OSError:
            continue
        yield f"noexec_{name}", "yes" if found.f_flag & os.ST_NOEXEC else "no"
        yield ("tmpdir" if name == "tmp" else name), place
        if name == "prefix":
            yield "disk_free_mib", found.f_bavail * found.f_frsize >> 20


def _network(machine: Machine, service: Service, unit: Mapping[str, str], seen: Seen) -> None:
    """Who has the port; whether the service answers, with and without the environment's proxy."""
    proxy = next((machine.environ[name] for name in _PROXIES if machine.environ.get(name)), "")
    seen.add("environment", {"proxy": proxy})
    if service.port is None:
        return
    open_ports = listening((machine.read("/proc/net/tcp"), machine.read("/proc/net/tcp6")))
    health = machine.health(service.host, service.port, False)
    taken = service.port in open_ports
    ours = unit.get("ActiveState") in ("active", "activating") or health == "ready"
    seen.add(
        "/proc/net/tcp", {"port": service.port, "port_owner": ("ours" if ours else "other") if taken else "nobody"}
    )
    seen.add("GET /health", {"health": health})
    if proxy:
        seen.add(
            "GET /health through the proxy", {"health_by_proxy": machine.health(service.host, service.port, True)}
        )
