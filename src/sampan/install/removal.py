"""Taking away what install made, thing by thing: what uninstall does, and what finishes one that was killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sampan import i18n
from sampan.errors import MissingToolError
from sampan.install import account, boot_guard, disk, journal, key_file, release
from sampan.install.machine import RUN, Machine
from sampan.install.model import (
    CONFIG,
    CURRENT,
    DEFAULT_HOME,
    RECORD,
    RELEASES,
    SYSTEM,
    Installed,
    unit_name,
    user_home,
    user_name,
)

_TRUSTED = "etc/sampan/trusted-keys"  # see trust/keyring.py: of the machine, not of one service


def check_rights(record: Installed, machine: Machine) -> None:
    """Raises MissingToolError where only root may."""
    folder = machine.unit_file(record.name).parent
    if record.service and not os.access(folder, os.W_OK):
        raise MissingToolError("install.needs-root", folder=str(folder))


def steps(record: Installed, machine: Machine, purge: bool) -> Iterator[str]:
    """Remove unit, user, keys (with ``purge``) and files; give each thing by name. Raises ServiceError, OSError."""
    if record.service:
        yield from _unit(record, machine)
    user = user_name(record.name)
    if record.user_created and record.user == user:
        key_file.give_back(machine, record.name, record.keys, record.certificate_key)
        if account.remove(machine, user):
            yield i18n.text("install.user", user=user)
    keys = key_file.path_of(machine, record.name, None).parent
    if purge and record.scope == SYSTEM and keys.is_dir():
        shutil.rmtree(keys)
        yield str(keys)
    yield from _files(Path(record.prefix))


def _unit(record: Installed, machine: Machine) -> Iterator[str]:
    name = record.name
    path = machine.unit_file(name)
    boot_guard.disarm(Path(record.prefix), name, machine)
    if path.is_file():
        machine.must(*machine.manage(name, "stop"), timeout=None)
        machine.must(*machine.manage(name, "disable"))
        path.unlink()
        yield str(path)
    disk.sweep(path)
    own_changes = path.with_name(f"{unit_name(name)}.d")  # of `systemctl edit`: without its unit it means nothing
    if own_changes.is_dir():
        shutil.rmtree(own_changes)
        yield str(own_changes)
    if path.suffix == ".service":
        machine.must(*machine.manage(name, "daemon-reload"))
        machine.attempt(*machine.manage(name, "reset-failed"))


def _files(prefix: Path) -> Iterator[str]:
    (prefix / CURRENT).unlink(missing_ok=True)
    for folder in (prefix / RELEASES, prefix / CONFIG, prefix / RUN):
        if folder.is_dir():
            shutil.rmtree(folder)
            yield str(folder)
    release.sweep_rebuilt(prefix)
    for name in (RECORD, journal.NAME):
        disk.sweep(prefix / name)
    (prefix / RECORD).unlink(missing_ok=True)


def folders(record: Installed) -> Iterator[str]:
    """When the lock is free: remove the last file, the prefix, and what was made to hold it, where they are empty;
    give each. Raises OSError.
    """
    prefix = Path(record.prefix)
    (prefix / journal.NAME).unlink(missing_ok=True)
    ours = (DEFAULT_HOME, user_home())
    above = [folder for folder in prefix.parents if str(folder) in record.created or folder in ours]
    for folder in (prefix, *above):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            yield str(folder)


def left(record: Installed, machine: Machine) -> tuple[str, ...]:
    """What stays because it is not ours: other things in the prefix, keys for the API and those that are trusted."""
    prefix, keys = Path(record.prefix), key_file.path_of(machine, record.name, None).parent
    inside = sorted(map(str, prefix.iterdir())) if prefix.is_dir() else []
    return (*inside, *(str(place) for place in (keys, machine.root / _TRUSTED) if place.is_dir()))
