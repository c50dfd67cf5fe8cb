"""Serve in the foreground within limits: become the command that does."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sampan import i18n
from sampan.edge.process import ProcessRunner
from sampan.errors import MissingToolError
from sampan.install import sandbox
from sampan.install.machine import Machine
from sampan.install.model import SYSTEM, USER, OwnLimits


def run(bundle: Path, words: Sequence[str], own: OwnLimits, say: Callable[[str], None]) -> None:
    """Become ``sampan serve`` with these words. Raises MissingToolError where it cannot be started."""
    root = os.geteuid() == 0
    machine = Machine(ProcessRunner(), scope=SYSTEM if root else USER)
    found = sandbox.bounds(
        (str(bundle / "sampan"), "serve", *words),
        own,
        systemd=machine.systemd_version(),
        root=root,
        delegated=_delegated(os.getuid()),
        free=frozenset(os.sched_getaffinity(0)),
    )
    if found.cpus:
        os.sched_setaffinity(0, found.cpus)
    if found.data_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (found.data_bytes, found.data_bytes))
        say(i18n.text("cli.run.by-process"))
    sys.stdout.flush()
    try:
        os.execvp(found.command[0], found.command)  # noqa: S606
    except OSError as error:
        raise MissingToolError("tool.missing", tool=found.command[0]) from error


def _delegated(uid: int) -> bool:
    """Whether this user's systemd may set limits: in cgroups v2 it is given the controllers, in v1 it is not."""
    path = Path(f"/sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers")
    try:
        return "memory" in path.read_text(encoding="ascii").split()
    except OSError:
        return False
