"""A change of what is in force, all or nothing: written down, done, and taken back where a step fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sampan.errors import BusyError, MissingToolError
from sampan.install import account, boot_guard, config, disk, journal, lock, recover, release
from sampan.install.facts import read_record
from sampan.install.job import Hands, Job, write_record
from sampan.install.journal import Pending
from sampan.install.lock import Lock
from sampan.install.machine import Machine
from sampan.install.model import CURRENT, RECORD, RELEASES, Installed


@contextmanager
def alone(prefix: Path, machine: Machine, hands: Hands) -> Iterator[Lock]:
    """No other change of ``prefix`` meanwhile, and what a killed one left is settled first.

    Where the prefix is not there yet, or nobody's, the lock is still to be taken. Raises BusyError, OSError.
    """
    held, left = Lock(prefix), None
    try:
        ours = (prefix / RECORD).is_file() or (prefix / journal.NAME).is_file()
        if ours and os.access(prefix, os.W_OK | os.X_OK):
            held.take()
            left = recover.after_a_kill(prefix, machine, hands)
            if left is not None:
                journal.clear(prefix)
        yield held
    finally:
        held.free()
        if left is not None:
            recover.tidy_folders(prefix, left)


def take(held: Lock, prefix: Path) -> None:
    """Hold the lock of an installed service. Raises MissingToolError without the rights, BusyError, OSError."""
    if not os.access(prefix, os.W_OK | os.X_OK):
        raise MissingToolError("install.needs-root", folder=str(prefix))
    held.take()


def settle(prefix: Path, machine: Machine, hands: Hands) -> None:
    """Bring what a killed change left to an end, and do nothing else. Raises BusyError, FilesystemError."""
    if any((prefix / name).exists() for name in (journal.NAME, lock.NAME)):
        with disk.filesystem_errors(prefix), alone(prefix, machine, hands):
            pass


def describe(
    verb: str, record: Installed, before: Installed | None, machine: Machine, created: tuple[Path, ...] = ()
) -> Pending:
    """How everything stands before the first step. Raises OSError, ServiceError."""
    name, prefix = record.name, Path(record.prefix)
    link = prefix / CURRENT
    path = machine.unit_file(name)
    unit = path.read_text(encoding="utf-8") if record.service and path.is_file() else None
    state = machine.state(name) if unit is not None else {}
    return Pending(
        verb=verb,
        name=name,
        release=record.release,
        service=record.service,
        scope=record.scope,
        before=before,
        current=str(link.readlink()) if link.is_symlink() else None,
        unit=unit,
        active=state.get("ActiveState") in ("active", "activating"),
        fresh_release=not (prefix / RELEASES / str(record.release)).exists(),
        fresh_config=not config.folder(prefix, record.release).exists(),
        fresh_user=record.user is not None and not account.exists(machine, record.user),
        created=tuple(map(str, created)),
        pid=os.getpid(),
        keys=record.keys,
        certificate_key=record.certificate_key,
    )


def make(job: Job, held: Lock, steps: Callable[[Job], None]) -> Installed:
    """Write down what is under way, do ``steps``, commit; the record in force. What fails is taken back."""
    prefix, pending = job.prefix, job.pending
    try:
        journal.write(prefix, pending)
        steps(job)
        done = replace(job.record, user_created=job.record.user_created or pending.fresh_user)
        write_record(prefix, done)
    except BaseException:
        job.say("undo")
        if recover.take_back(prefix, pending_now(prefix, pending), job.machine, job.hands):
            held.free()
            recover.tidy_folders(prefix, pending)
            job.say("undone")
        raise
    config.keep(prefix, done, job.unit)
    release.sweep(prefix / RELEASES)
    recover.end_of_switch(pending_now(prefix, pending), job.machine, job.hands)
    boot_guard.disarm(prefix, done.name, job.machine)
    journal.clear(prefix)
    return done


def pending_now(prefix: Path, begun: Pending) -> Pending:
    """As it is on the disk by now; ``begun`` where it could not even be written."""
    return journal.read(prefix) or begun


def hold_new(prefix: Path, held: Lock, before: Installed | None) -> tuple[Path, ...]:
    """Make the prefix and hold its lock; the folders made. Raises BusyError where somebody came between, OSError."""
    made = disk.make_folders(prefix)
    if not held.held:
        held.take()
        if read_record(prefix) != before or (prefix / journal.NAME).exists():
            raise BusyError("install.busy", prefix=str(prefix), pid="?")
    return made
