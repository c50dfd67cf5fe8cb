"""``rollback``: an earlier release in force again, with the configuration that it had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sampan.errors import UsageError, VerificationError
from sampan.install import change, config, disk, files, looking, release, serving
from sampan.install.facts import read_record
from sampan.install.gc import numbers
from sampan.install.job import Hands, Job
from sampan.install.machine import Machine
from sampan.install.model import RELEASES, Installed
from sampan.install.source import plan_of
from sampan.install.steps import keeper, unit_facts


def rollback(
    prefix: Path,
    wanted: int | None,
    machine: Machine,
    hands: Hands,
    *,
    health_seconds: float = 900.0,
    restart: bool = False,
    features: frozenset[str] | None = None,
) -> Installed:
    """Switch to release ``wanted`` (None: the one before), see it answer rightly; the record in force.

    ``features`` are this CPU's. Raises UsageError (no such release), VerificationError (it is not whole any longer),
    IncompatibleError (preflight, all problems at once), BusyError, ServiceError, FilesystemError; whatever is raised,
    what ran before runs again.
    """
    with disk.filesystem_errors(prefix), change.alone(prefix, machine, hands) as lock:
        change.take(lock, prefix)
        now = read_record(prefix)
        if now is None:
            raise UsageError("install.not-installed", prefix=str(prefix))
        target = _target(prefix, now, wanted)
        record, text = _as_it_was(prefix, now, target, machine)
        looking.check_return(machine, prefix / RELEASES / str(target), record, hands, features)
        pending = change.describe("rollback", record, now, machine)
        job = Job(prefix, record, pending, text, True, machine, hands, health_seconds, restart)
        done = change.make(job, lock, _steps)
    job.say("rolled-back", release=done.release, before=now.release)
    return done


def _steps(job: Job) -> None:
    files.probe(job)
    serving.go_live(job)


def _target(prefix: Path, now: Installed, wanted: int | None) -> int:
    """The release to return to, proved to be whole."""
    target, there = now.previous if wanted is None else wanted, numbers(prefix)
    others = ", ".join(str(number) for number in there if number != now.release) or "-"
    if target is None:
        raise UsageError("install.no-earlier-release", release=now.release, prefix=str(prefix), there=others)
    if target not in there or target == now.release:
        raise UsageError("install.no-such-release", release=target, prefix=str(prefix), there=others)
    folder = prefix / RELEASES / str(target)
    if not release.intact(folder):
        raise VerificationError("install.release-damaged", path=str(folder))
    return target


def _as_it_was(prefix: Path, now: Installed, target: int, machine: Machine) -> tuple[Installed, str | None]:
    """Record and unit text of ``target``; of a release that was never in force, the present configuration."""
    was, text = config.record_of(prefix, target), config.unit_of(prefix, target, now.name)
    record = replace(
        was or now,
        release=target,
        previous=now.release,
        created=now.created,
        user_created=now.user_created,
        overrides=now.overrides,
    )
    if not now.service:
        return replace(record, service=False, unit=None, user=None), None
    if was is None or not was.service or was.scope != now.scope or text is None:
        record = replace(now, release=target, previous=now.release)
        facts = unit_facts(plan_of(prefix / RELEASES / str(target)), record, machine.systemd_version())
        text = keeper(facts)
    return record, text
