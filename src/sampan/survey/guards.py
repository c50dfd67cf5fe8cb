"""What may refuse a program to start, from files; Kylin's own command only where a Runner is handed."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

from sampan.spec.ports import Runner
from sampan.spec.target import SecurityFacts
from sampan.survey.files import read_text


def facts(root: Path) -> SecurityFacts:
    """SELinux, AppArmor, KYSEC and fapolicyd as files show them; None where the place to look is not there."""
    return SecurityFacts(
        selinux=_switch(root / "sys/fs", "selinux/enforce", {"1": "enforcing", "0": "permissive"}),
        apparmor=_switch(root / "sys/module", "apparmor/parameters/enabled", {"Y": "enabled", "N": "disabled"}),
        kysec=_kysec(root),
        fapolicyd=_fapolicyd(root),
    )


def ask(known: SecurityFacts, runner: Runner) -> SecurityFacts:
    """The state of KYSEC's execution control from ``getstatus``, which needs no root."""
    if shutil.which("getstatus") is None:
        return known
    state = kysec_state(runner.run(["getstatus"], env={"LC_ALL": "C"}, timeout=10).output)
    return replace(known, kysec=state) if state else known


def kysec_state(text: str) -> str | None:
    """``exec control : warning`` gives ``warning``; None where the text is not KYSEC's."""
    found = re.search(r"^ *exec control *: *([a-z]+)", text, re.MULTILINE)
    return found[1] if found else None


def _switch(place: Path, name: str, states: dict[str, str]) -> str | None:
    if not place.is_dir():
        return None
    return states.get(read_text(place / name).strip(), "absent")


def _absent(root: Path) -> str | None:
    """What is not found is absent where the place to look is there at all."""
    return "absent" if (root / "usr/sbin").is_dir() else None


def _kysec(root: Path) -> str | None:
    places = ("etc/kysec", "sbin/kysec_set", "usr/sbin/kysec_set", "usr/bin/kysec_set", "bin/kysec_set")
    return "present" if any((root / place).exists() for place in places) else _absent(root)


def _fapolicyd(root: Path) -> str | None:
    if any(read_text(comm).strip() == "fapolicyd" for comm in root.glob("proc/[0-9]*/comm")):
        return "running"
    return "installed" if (root / "usr/sbin/fapolicyd").exists() else _absent(root)
