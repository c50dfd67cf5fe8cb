"""``uninstall``: stop, and take away what install made, by name; what is not ours stays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sampan import i18n
from sampan.errors import MissingToolError, UsageError
from sampan.install import account, disk
from sampan.install.job import Hands
from sampan.install.machine import Machine
from sampan.install.model import CURRENT, DEFAULT_HOME, RECORD, RELEASES, Installed, Removed, unit_name, user_name
from sampan.install.service import Found


def uninstall(found: Found, hands: Hands) -> Removed:
    """Remove unit, user and prefix of an installed service.

    The record goes last, so that an interrupted run can be repeated. It may run from inside the prefix: everything
    that it needs is loaded before the first file goes. Raises UsageError where nothing is installed,
    MissingToolError without root, FilesystemError, ServiceError.
    """
    if found.record is None:
        raise UsageError("install.not-installed", prefix=str(DEFAULT_HOME / found.name))
    record = found.record
    machine = Machine(hands.runner, hands.root)
    i18n.catalogue()
    gone: list[str] = []
    with disk.filesystem_errors(Path(record.prefix)):
        for thing in _steps(record, machine):
            gone.append(thing)
            hands.echo(i18n.text("install.removed", thing=thing))
    kept = _left(Path(record.prefix))
    for thing in kept:
        hands.echo(i18n.text("install.kept", thing=thing))
    return Removed(tuple(gone), kept)


def _steps(record: Installed, machine: Machine) -> Iterator[str]:
    if record.service:
        yield from _unit(record, machine)
    user = user_name(record.name)
    if record.user_created and record.user == user and account.remove(machine, user):
        yield i18n.text("install.user", user=user)
    yield from _files(record)


def _unit(record: Installed, machine: Machine) -> Iterator[str]:
    unit = unit_name(record.name)
    path = machine.unit_folder / unit
    if not os.access(machine.unit_folder, os.W_OK):
        raise MissingToolError("install.needs-root", folder=str(machine.unit_folder))
    if path.is_file():
        machine.must("systemctl", "stop", unit, timeout=None)
        machine.must("systemctl", "disable", unit)
        path.unlink()
        yield str(path)
    own_changes = path.with_name(f"{path.name}.d")  # of `systemctl edit`: without its unit it means nothing
    if own_changes.is_dir():
        shutil.rmtree(own_changes)
        yield str(own_changes)
    machine.must("systemctl", "daemon-reload")
    machine.attempt("systemctl", "reset-failed", unit)


def _files(record: Installed) -> Iterator[str]:
    prefix = Path(record.prefix)
    (prefix / CURRENT).unlink(missing_ok=True)
    if (prefix / RELEASES).is_dir():
        shutil.rmtree(prefix / RELEASES)
        yield str(prefix / RELEASES)
    (prefix / RECORD).unlink(missing_ok=True)
    above = [folder for folder in prefix.parents if str(folder) in record.created or folder == DEFAULT_HOME]
    for folder in (prefix, *above):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            yield str(folder)


def _left(prefix: Path) -> tuple[str, ...]:
    return tuple(sorted(map(str, prefix.iterdir()))) if prefix.is_dir() else ()
