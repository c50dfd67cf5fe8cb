"""What changes an installation: upgrade from a tar or folder that this release has judged, roll back, tidy up."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sampan.errors import BadInputError, MissingToolError, UsageError
from sampan.flow import asking
from sampan.flow.opening import Wish, opened
from sampan.install import change, gc
from sampan.install import rollback as rolling
from sampan.install.model import DEFAULT_HOME, Installed, InstallOptions
from sampan.install.steps import put
from sampan.spec.ports import Progress
from sampan.survey import features
from sampan.survey import guards as security

if TYPE_CHECKING:
    from sampan.install.lookup import Found

Say = Callable[[str], None]


def who() -> str:
    """The person at the keyboard, as far as this machine knows: for the record of what was overridden."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    by = os.environ.get("SUDO_USER", "")
    return f"{by} ({name})" if by and by.isprintable() and len(by) < 64 else name


def guards() -> tuple[str, ...]:
    """Security modules that may refuse a program, by name and state."""
    found = security.facts(Path("/"))
    states = (("SELinux", found.selinux), ("KYSEC", found.kysec), ("fapolicyd", found.fapolicyd))
    return tuple(f"{name} ({state})" for name, state in states if state in ("enforcing", "present", "running"))


def upgrade(path: Path, found: Found, wish: Wish, say: Say, progress: Progress) -> Installed:
    """Put the bundle at ``path`` in force in the place of what is installed. Nothing of it runs before it is proved.

    Raises VerificationError, BadInputError, and as ``install`` does.
    """
    record = _need(found)
    with opened(path, record, wish, say, progress) as given:
        if given.plan.name != record.name:
            raise BadInputError("install.other-service", path=str(path), found=given.plan.name, wanted=record.name)
        options = InstallOptions(
            bundle=path,
            features=features.current(),
            prefix=Path(record.prefix),
            service=record.service,
            scope=record.scope,
            allow_downgrade=wish.allow_downgrade,
            unsigned=wish.unsigned,
            who=who(),
            guards=guards(),
            keep=wish.keep,
            restart=wish.restart,
        )
        return put("upgrade", given, options, asking.hands(say, progress))


def _need(found: Found) -> Installed:
    if found.record is None:
        raise UsageError("install.not-installed", prefix=str(DEFAULT_HOME / found.name))
    return found.record


def rollback(found: Found, wanted: int | None, say: Say, progress: Progress, *, restart: bool = False) -> Installed:
    """An earlier release in force again. Raises as ``install.rollback`` does."""
    hands = asking.hands(say, progress)
    machine, here = found.machine(hands.runner), features.current()
    return rolling.rollback(Path(_need(found).prefix), wanted, machine, hands, restart=restart, features=here)


def releases(found: Found) -> gc.Releases:
    """What is there."""
    return gc.releases(_need(found))


def collect(found: Found, keep: int, say: Say, progress: Progress) -> gc.Collected:
    """Remove old releases."""
    hands = asking.hands(say, progress)
    return gc.gc(Path(_need(found).prefix), keep, found.machine(hands.runner), hands)


def settle(found: Found, say: Say) -> None:
    """Bring what a killed change left to an end."""
    from sampan.edge.progress import SilentProgress

    hands = asking.hands(say, SilentProgress())
    change.settle(Path(_need(found).prefix), found.machine(hands.runner), hands)


def logs(found: Found, *, follow: bool, lines: int) -> None:
    """Become the program that shows what the service printed. Raises UsageError without a unit, MissingToolError."""
    from sampan.edge.process import ProcessRunner

    if not found.has_unit:
        raise UsageError("install.no-unit", name=found.name, command="./start.sh")
    command = found.machine(ProcessRunner()).log_command(
        found.name, f"--lines={lines}", "--no-pager", "--output=short", *(["--follow"] if follow else [])
    )
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        raise MissingToolError("tool.missing", tool=command[0]) from error
