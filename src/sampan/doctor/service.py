"""The service's unit, its journal and the kernel's lines on our programs, as far as they are not history."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from sampan.doctor.machine import Machine, Seen, Service
from sampan.doctor.seen import booted, last_words, properties

_OURS = re.compile(r"llama-server|sampan|\bld\.so\b")  # the private Python runs under its own loader
_UNIT = "ActiveState,Result,ExecMainStatus,NRestarts,MainPID,ControlGroup,InactiveExitTimestampMonotonic"
_TAIL = 1 << 20


def unit(machine: Machine, service: Service, seen: Seen) -> dict[str, str]:
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
    argv = ["journalctl", "--unit", service.unit, "--lines=400", "--no-pager", "--output=short-iso"]
    since, uptime = _good_since(found), machine.read("/proc/uptime").partition(" ")[0]
    if since is not None and uptime:
        began = time.localtime(time.time() - float(uptime) + since - 1)
        argv.append(f"--since={time.strftime('%Y-%m-%d %H:%M:%S', began)}")
    journal = machine.run(*argv) or ""
    seen.add(f"journalctl -u {service.unit}", {"last_words": last_words(journal)})
    seen.add_text(f"journalctl -u {service.unit}", journal)
    return found


def _good_since(unit: Mapping[str, str]) -> float | None:
    """Seconds from boot to the start of a service that has run ever since: what is older is history.

    None where it does not run, was restarted after a failure, or its systemd (before 235) does not count restarts.
    """
    began = unit.get("InactiveExitTimestampMonotonic", "")
    steady = unit.get("ActiveState") == "active" and unit.get("NRestarts") == "0"
    return int(began) / 1e6 if steady and began.isdecimal() else None


def kernel(machine: Machine, unit: Mapping[str, str], seen: Seen) -> None:
    """The kernel's lines on our programs, among the texts."""
    lines = (machine.run("dmesg") or "")[-_TAIL:].splitlines()
    since = _good_since(unit) or 0.0
    seen.add_text("dmesg", "\n".join(line for line in lines if _OURS.search(line) and booted(line) >= since))
