"""The whole survey of the machine that we run on: ``survey_this``, and what depends on the session and the moment.

It is apart because a bundle for ``--target this`` must be the same whenever and by whomever it is made.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from sampan.spec.ports import Runner
from sampan.spec.target import Moment, TargetProfile, UserFacts
from sampan.survey import accelerators, guards, programs, resources
from sampan.survey.files import read_text
from sampan.survey.machine import survey_this

_TELLING_GROUPS = frozenset(
    ["root", "wheel", "sudo", "admin", "docker", "video", "render", "systemd-journal", "HwHiAiUser"]
)


def survey_whole(
    root: Path = Path("/"), *, runner: Runner | None, environ: Mapping[str, str], now: datetime
) -> TargetProfile:
    """Everything that the survey script finds. Without a ``runner`` no program is asked for its version.

    ``environ``: of proxy variables only the names are kept. ``now``: aware. Raises IncompatibleError
    ``survey.userland``.
    """
    known = survey_this(root)
    meminfo = read_text(root / "proc/meminfo")
    whole = replace(
        known,
        kernel_arch=os.uname().machine,
        limits=resources.limits(read_text(root / "proc/self/limits")),
        disks=resources.disks(root, sizes=True),
        user=_user(),
        proxies=tuple(sorted(name for name, value in environ.items() if value and _is_proxy(name))),
        locale=next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), None),
        moment=Moment(
            utc=now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            memory_available_bytes=resources.kilobytes(meminfo, "MemAvailable"),
            listening_ports=_ports(root),
        ),
    )
    return _asked(whole, runner) if runner else whole


def _asked(known: TargetProfile, runner: Runner) -> TargetProfile:
    versions = programs.ask(runner)
    return replace(
        known,
        python=versions.python or known.python,
        openssl=versions.openssl,
        openssh=versions.openssh,
        tar=versions.tar,
        security=guards.ask(known.security, runner),
        gpus=accelerators.ask_nvidia(known.gpus, runner),
        npus=accelerators.ask_npu(known.npus, runner),
    )


def _is_proxy(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z]+_proxy", name, re.IGNORECASE) is not None


def _ports(root: Path) -> tuple[int, ...] | None:
    if not (root / "proc/net/tcp").exists():
        return None
    return resources.listening_ports(read_text(root / "proc/net/tcp"), read_text(root / "proc/net/tcp6"))


def _user() -> UserFacts:
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = ""
    names = []
    for number in dict.fromkeys((os.getgid(), *os.getgroups())):
        try:
            names.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    groups = tuple(name for name in names if name in _TELLING_GROUPS)
    return UserFacts(name, uid, groups, sudo=shutil.which("sudo") is not None)
