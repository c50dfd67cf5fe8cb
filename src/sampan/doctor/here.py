"""What can be seen on the machine itself: facts for conditions, and texts to be read like any other log.

Nothing is changed. Files come from below ``root``, commands through the runner, health through the probe; what
cannot be seen is left out, so that conditions on it stay unknown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from sampan.doctor.machine import HealthProbe, Machine, Seen, Service
from sampan.doctor.seen import cgroups, limits, listening, mandatory
from sampan.doctor.service import kernel, unit

__all__ = ["HealthProbe", "Machine", "Seen", "Service", "look"]

_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def look(machine: Machine, service: Service) -> Seen:
    """Everything that can be seen now."""
    seen = Seen()
    seen.add("--here", {"here": "yes"})
    found = unit(machine, service, seen)
    pid = found.get("MainPID", "0")
    own = f"/proc/{pid}" if pid not in ("", "0") else "/proc/self"
    seen.add(f"{own}/limits", limits(machine.read(f"{own}/limits")))
    seen.add("cgroup", cgroups(machine.read, found.get("ControlGroup", "")))
    seen.add("SELinux, KYSEC, fapolicyd", mandatory(machine.read, machine.run))
    seen.add("statvfs", dict(_places(machine, service)))
    seen.add("clock", {"clock_year": time.gmtime().tm_year})
    _network(machine, service, found, seen)
    kernel(machine, found, seen)
    return seen


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
