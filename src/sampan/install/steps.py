"""``install`` and ``upgrade``: release folder, user, unit, switch, start, proof; a step that fails undoes all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from sampan import i18n
from sampan.errors import UsageError
from sampan.install import change, disk, files, gc, looking, preflight, script, serving, source, unit
from sampan.install.change import describe, hold_new
from sampan.install.facts import read_record
from sampan.install.job import Hands, Job
from sampan.install.machine import Machine
from sampan.install.model import (
    CURRENT,
    DEFAULT_HOME,
    SCRIPT,
    SYSTEM,
    Installed,
    InstallOptions,
    Override,
    OwnLimits,
    checked_name,
    probe_host,
    user_name,
)
from sampan.install.source import Source
from sampan.spec.plan import Plan

_OVERRIDES_KEPT = 20
_LOOPBACK = "127.0.0.1"


def install(options: InstallOptions, hands: Hands) -> Installed:
    """Install the bundle and prove that it serves; give the record that was left in the prefix.

    Raises IncompatibleError, MissingToolError, FilesystemError (preflight, all problems at once), BusyError,
    BadInputError, VerificationError, ServiceError; whatever is raised, what ran before runs again and nothing new
    is left.
    """
    return put("install", source.from_folder(options.bundle, consume=options.consume), options, hands)


def put(verb: str, given: Source, options: InstallOptions, hands: Hands) -> Installed:
    """``install`` from any source; ``upgrade`` demands that the same service is installed already."""
    plan = given.plan
    checked_name(plan.name)
    prefix = (options.prefix or DEFAULT_HOME / plan.name).absolute()
    machine = Machine(hands.runner, hands.root, options.scope, prefix)
    with disk.filesystem_errors(prefix), change.alone(prefix, machine, hands) as lock:
        before = read_record(prefix)
        if verb == "upgrade" and before is None:
            raise UsageError("install.not-installed", prefix=str(prefix))
        wanted = _to_be(plan, options, before, machine, prefix)
        facts = looking.look(machine, given, wanted, prefix)
        preflight.check(plan, options, prefix, wanted.port, facts)
        hands.echo(i18n.text("install.step.preflight"))
        for notice in preflight.notices(plan, options, facts):
            hands.echo(f"  ! {notice.text()}")
        made = hold_new(prefix, lock, before)
        record = wanted if before else replace(wanted, created=tuple(map(str, made)))
        text = keeper(unit_facts(plan, record, facts.systemd)) if record.service else None
        pending = describe(verb, record, before, machine, made)
        untouched = facts.release_state == "same"
        job = Job(prefix, record, pending, text, untouched, machine, hands, options.health_seconds, options.restart)
        done = change.make(job, lock, partial(_steps, given))
        gc.collect(prefix, done, options.keep, hands.echo)
    _farewell(job)
    given.used()
    return done


def _steps(given: Source, job: Job) -> None:
    files.lay_down(job, given)
    files.probe(job)
    serving.go_live(job)


def _to_be(
    plan: Plan, options: InstallOptions, before: Installed | None, machine: Machine, prefix: Path
) -> Installed:
    """The record that will be in force: what the options say, else what is in force, else what the plan says."""
    now, service = before or Installed("", 0, "", "", False, _LOOPBACK, plan.port), options.service
    return Installed(
        name=plan.name,
        release=plan.release,
        state="installed",
        prefix=str(prefix),
        service=service,
        host=options.host or now.host,
        port=now.port if options.port is None else options.port,
        unit=str(machine.unit_file(plan.name)) if service else None,
        user=user_name(plan.name) if service and options.scope == SYSTEM else None,
        user_created=now.user_created,
        created=now.created,
        previous=_previous(plan.release, before),
        scope=options.scope,
        keys=options.keys or now.keys,
        certificate=options.certificate or now.certificate,
        certificate_key=options.certificate_key or now.certificate_key,
        limits=_limits(options.limits, now.limits),
        overrides=(*now.overrides, *_overridden(plan, options, before))[-_OVERRIDES_KEPT:],
    )


def _previous(release: int, before: Installed | None) -> int | None:
    """What roll-back returns to: the release that ran before this one."""
    if before is None:
        return None
    return before.previous if before.release == release else before.release


def _limits(wanted: OwnLimits, now: OwnLimits) -> OwnLimits:
    return OwnLimits(
        memory_bytes=wanted.memory_bytes or now.memory_bytes,
        cpu_percent=wanted.cpu_percent or now.cpu_percent,
        cpus=wanted.cpus or now.cpus,
    )


def _overridden(plan: Plan, options: InstallOptions, before: Installed | None) -> Iterator[Override]:
    older = before is not None and plan.release < before.release
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    instead_of = before.release if before else None
    for what, said in (("downgrade", older and options.allow_downgrade), ("unsigned", options.unsigned)):
        if said:
            yield Override(what, options.who, plan.release, instead_of, when)


def unit_facts(plan: Plan, record: Installed, systemd: int | None) -> unit.UnitFacts:
    """What the unit of ``record`` says."""
    return unit.UnitFacts(
        name=record.name,
        description=f"sampan: {record.name} ({plan.model}, {plan.task})",
        prefix=Path(record.prefix),
        user=user_name(record.name),
        host=record.host,
        port=record.port,
        limits=unit.limits(plan, record.limits),
        systemd=systemd or unit.OLDEST_SYSTEMD,
        language=i18n.language(),
        scope=record.scope,
        keys=record.keys,
        tls=(record.certificate, record.certificate_key) if record.certificate and record.certificate_key else None,
    )


def keeper(facts: unit.UnitFacts) -> str:
    """The text of what keeps the service alive: a unit, or the script that stands in for systemd."""
    return script.render(facts) if facts.scope == SCRIPT else unit.render(facts)


def _farewell(job: Job) -> None:
    current = job.prefix / CURRENT
    if job.record.service:
        scheme = "https" if job.record.certificate else "http"
        where = {"scheme": scheme, "host": probe_host(job.record.host), "port": job.record.port}
        job.say("serves", **where, sampan=current / "sampan")
    else:
        job.say("by-hand", command=current / "start.sh")
