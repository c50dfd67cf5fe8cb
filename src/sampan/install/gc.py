"""The releases that a prefix holds, and which of them may go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sampan import i18n
from sampan.install import change, config, disk, release
from sampan.install.facts import read_record
from sampan.install.job import Hands
from sampan.install.machine import Machine
from sampan.install.model import RELEASES, Echo, Installed


@dataclass(frozen=True)
class Release:
    """One release in the prefix. ``port``: of its own configuration; None where it was never in force."""

    release: int
    current: bool
    previous: bool
    size_bytes: int
    port: int | None


@dataclass(frozen=True)
class Releases:
    """All of them, the newest first."""

    SCHEMA: ClassVar[str] = "sampan/releases/1"

    name: str
    prefix: str
    releases: tuple[Release, ...]


@dataclass(frozen=True)
class Collected:
    """The releases that ``gc`` removed."""

    SCHEMA: ClassVar[str] = "sampan/collected/1"

    prefix: str
    removed: tuple[int, ...]


def numbers(prefix: Path) -> tuple[int, ...]:
    """The releases that are there, the highest first."""
    folder = prefix / RELEASES
    found = (path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
    return tuple(sorted((int(name) for name in found if name.isdecimal()), reverse=True))


def releases(record: Installed) -> Releases:
    """What ``record``'s prefix holds. Raises BadInputError, OSError."""
    prefix = Path(record.prefix)
    return Releases(record.name, record.prefix, tuple(_look(prefix, record, number) for number in numbers(prefix)))


def _look(prefix: Path, record: Installed, number: int) -> Release:
    own = config.record_of(prefix, number)
    return Release(
        release=number,
        current=number == record.release,
        previous=number == record.previous,
        size_bytes=release.size(prefix / RELEASES / str(number)),
        port=own.port if own else None,
    )


def removable(there: tuple[int, ...], current: int, previous: int | None, keep: int) -> tuple[int, ...]:
    """Which go: all but the current, the previous, and of the others the highest up to ``keep`` in all."""
    held = [number for number in (current, previous) if number in there]
    others = sorted(set(there) - set(held), reverse=True)
    return tuple(others[max(0, keep - len(held)) :])


def collect(prefix: Path, record: Installed, keep: int, echo: Echo) -> tuple[int, ...]:
    """Remove what may go, with its configuration; the caller holds the lock. Raises OSError."""
    old = removable(numbers(prefix), record.release, record.previous, keep)
    gone = tuple(number for number in old if not release.runs_from(prefix / RELEASES / str(number)))
    for number in (number for number in old if number not in gone):
        echo(i18n.text("install.kept-running", release=number))
    for number in gone:
        release.retire(prefix / RELEASES / str(number))
        config.forget(prefix, number)
        echo(i18n.text("install.removed", thing=str(prefix / RELEASES / str(number))))
    return gone


def gc(prefix: Path, keep: int, machine: Machine, hands: Hands) -> Collected:
    """``collect`` as a command of its own; what was taken for a release that did not come to be is given up, too.

    Raises BusyError, BadInputError, FilesystemError.
    """
    with disk.filesystem_errors(prefix), change.alone(prefix, machine, hands) as lock:
        change.take(lock, prefix)
        record = read_record(prefix)
        gone = collect(prefix, record, keep, hands.echo) if record else ()
        for target in release.taken(prefix / RELEASES):
            release.give_up(target)
            hands.echo(i18n.text("install.removed", thing=str(release.aside(target, release.TAKING))))
    return Collected(str(prefix), gone)
