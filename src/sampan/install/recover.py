"""Take back a change that did not come to its end: after an error at once, after a kill by the next command."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from sampan import i18n
from sampan.errors import SampanError
from sampan.install import account, boot_guard, config, disk, journal, key_file, release, removal, room, takeover
from sampan.install.facts import read_record
from sampan.install.job import Hands
from sampan.install.journal import SWITCHING, Pending
from sampan.install.machine import RUN, Machine
from sampan.install.model import CONFIG, CURRENT, RECORD, RELEASES, user_name


def after_a_kill(prefix: Path, machine: Machine, hands: Hands) -> Pending | None:
    """Bring ``prefix`` to where it was before, or, where the change was done, to its end.

    Gives what was found pending and is settled but for ``tidy_folders``. An uninstall only goes forward. The caller
    holds the lock. Raises BadInputError, ServiceError, OSError.
    """
    pending, echo = journal.read(prefix), hands.echo
    releases = prefix / RELEASES
    _sweep(prefix, machine)
    release.sweep_rebuilt(prefix)
    if pending is None:
        if (now := read_record(prefix)) is not None and now.service:
            boot_guard.disarm(prefix, now.name, machine)
        release.sweep(releases)
        for number in config.numbers(prefix):
            if not (releases / str(number)).exists():  # a ``gc`` was killed between the two
                config.forget(prefix, number)
        return None
    if pending.verb == "uninstall" and pending.before is not None:
        echo(i18n.text("install.recovering-uninstall"))
        for thing in removal.steps(replace(pending.before, prefix=str(prefix)), machine, purge=False):
            echo(i18n.text("install.removed", thing=thing))
    elif (record := read_record(prefix)) is not None and record != pending.before:
        path = machine.unit_file(record.name)
        config.keep(prefix, record, path.read_text(encoding="utf-8") if record.service else None)
        release.sweep(releases)
        end_of_switch(pending, machine, hands)
        boot_guard.disarm(prefix, record.name, machine)
        journal.clear(prefix)
    else:
        echo(i18n.text("install.recovering", verb=pending.verb, release=pending.release))
        return pending if take_back(prefix, pending, machine, hands) else None
    return pending


def _sweep(prefix: Path, machine: Machine) -> None:
    """Remove the temporaries of files that were just being written."""
    record = read_record(prefix)
    (prefix / f".{CURRENT}.new").unlink(missing_ok=True)
    units = (machine.unit_file(record.name),) if record else ()
    own = (path for folder in (prefix / CONFIG).glob("*") for path in folder.glob("*"))
    for path in (prefix / RECORD, prefix / journal.NAME, *units, *own):
        if path.parent.is_dir():
            disk.sweep(path)


def end_of_switch(pending: Pending, machine: Machine, hands: Hands) -> None:
    """The change is done: when the predecessor is gone, memory for one release is enough again.

    Raises ServiceError, OSError.
    """
    if pending.main is not None:
        takeover.await_end(machine, pending.main, hands.sleep, hands.echo)
    if pending.lifted:
        room.settle(machine, pending.name)


def take_back(prefix: Path, pending: Pending, machine: Machine, hands: Hands) -> bool:
    """Everything as it was, and say what could not be; whether all could. What could not stays pending."""
    whole = True
    for step in _steps(prefix, pending, machine, hands):
        try:
            step()
        except (OSError, SampanError) as error:
            hands.echo(i18n.text("install.undo-failed", detail=str(error)))
            whole = False
    if whole and pending.before is not None:
        boot_guard.disarm(prefix, pending.name, machine)
        journal.clear(prefix)
    return whole


def tidy_folders(prefix: Path, pending: Pending) -> None:
    """When the lock is free: the last file goes, and with it the folders that were made for nothing."""
    if pending.verb == "uninstall" and pending.before is not None:
        list(removal.folders(replace(pending.before, prefix=str(prefix))))
    elif pending.before is None and not (prefix / RECORD).exists():
        journal.clear(prefix)
        disk.remove_empty(tuple(map(Path, pending.created)))


def _steps(prefix: Path, pending: Pending, machine: Machine, hands: Hands) -> Iterator[Callable[[], object]]:
    switched = pending.stage == SWITCHING
    if switched and pending.service:
        yield partial(_stop_new, pending, machine)
    if switched:
        yield partial(_point, prefix / CURRENT, pending.current)
    if switched and pending.service:
        yield partial(_unit_back, pending, machine)
        yield partial(_runs_again, pending, machine, hands)
    yield partial(_releases_back, prefix, pending)
    yield partial(_config_back, prefix, pending)
    if pending.fresh_user:
        yield partial(key_file.give_back, machine, pending.name, pending.keys, pending.certificate_key)
        yield partial(account.remove, machine, user_name(pending.name))


def _stop_new(pending: Pending, machine: Machine) -> None:
    if pending.unit is None:
        machine.attempt(*machine.manage(pending.name, "disable"))
    if not pending.active:
        machine.attempt(*machine.manage(pending.name, "stop"))


def _point(link: Path, target: str | None) -> None:
    if target is None:
        link.unlink(missing_ok=True)
    else:
        disk.point(link, target)


def _unit_back(pending: Pending, machine: Machine) -> None:
    name = pending.name
    path = machine.unit_file(name)
    if pending.unit is None:
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            disk.sweep(path)
    else:
        disk.write(path, pending.unit.encode())
    machine.attempt(*machine.manage(name, "daemon-reload"))
    machine.attempt(*machine.manage(name, "reset-failed"))


def _runs_again(pending: Pending, machine: Machine, hands: Hands) -> None:
    """What ran before goes on where it still is the service, else it is started again."""
    name = pending.name
    goes_on = pending.main is not None and takeover.call_off(machine, name, pending.main, hands.sleep)
    if pending.active and not goes_on:
        machine.attempt(*machine.manage(name, "restart", "--no-block"))
    if pending.lifted:
        room.settle(machine, name)


def _releases_back(prefix: Path, pending: Pending) -> None:
    releases = prefix / RELEASES
    target = releases / str(pending.release)
    if pending.fresh_release and not release.runs_from(target):
        release.retire(target)
    release.sweep(releases)
    disk.remove_empty((releases,))


def _config_back(prefix: Path, pending: Pending) -> None:
    before = pending.before
    if before is not None and before.release == pending.release:
        config.keep(prefix, before, pending.unit)
    elif pending.fresh_config:
        config.forget(prefix, pending.release)
    if before is None:
        shutil.rmtree(prefix / RUN, ignore_errors=True)  # of the script that kept the service alive
        shutil.rmtree(config.folder(prefix, pending.release).parent, ignore_errors=True)
