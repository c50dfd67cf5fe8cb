"""``uninstall``: stop, and take away what install made, by name; what is not ours stays."""

from __future__ import annotations

import os
from pathlib import Path

from sampan import i18n
from sampan.errors import UsageError
from sampan.install import change, disk, journal, removal
from sampan.install.facts import read_record
from sampan.install.job import Hands
from sampan.install.journal import Pending
from sampan.install.lookup import Found
from sampan.install.model import DEFAULT_HOME, Installed, Removed


def uninstall(found: Found, hands: Hands, *, purge: bool = False) -> Removed:
    """Remove unit, user and prefix of an installed service; with ``purge`` its API keys too.

    What is under way is written down first, so that an interrupted run is brought to its end by the next command. It
    may run from inside the prefix: everything that it needs is loaded before the first file goes. Raises UsageError
    where nothing is installed, MissingToolError without root, BusyError, FilesystemError, ServiceError.
    """
    if found.record is None:
        raise UsageError("install.not-installed", prefix=str(DEFAULT_HOME / found.name))
    prefix = Path(found.record.prefix)
    machine = found.machine(hands.runner, hands.root)
    i18n.catalogue()
    gone: list[str] = []
    with disk.filesystem_errors(prefix), change.alone(prefix, machine, hands) as lock:
        removal.check_rights(found.record, machine)
        lock.take()
        record = read_record(prefix) or found.record
        journal.write(prefix, _pending(record))
        for thing in removal.steps(record, machine, purge):
            gone.append(thing)
            hands.echo(i18n.text("install.removed", thing=thing))
    with disk.filesystem_errors(prefix):
        for thing in removal.folders(record):
            gone.append(thing)
            hands.echo(i18n.text("install.removed", thing=thing))
    kept = removal.left(record, machine)
    for thing in kept:
        hands.echo(i18n.text("install.kept", thing=thing))
    return Removed(tuple(gone), kept)


def _pending(record: Installed) -> Pending:
    return Pending(
        verb="uninstall",
        name=record.name,
        release=record.release,
        service=record.service,
        scope=record.scope,
        before=record,
        current=None,
        unit=None,
        active=False,
        fresh_release=False,
        fresh_config=False,
        fresh_user=False,
        created=record.created,
        stage=journal.SWITCHING,
        pid=os.getpid(),
    )
