"""The steps that make it a service: user, unit, switch, start, health, self-test."""

from __future__ import annotations

import time
from dataclasses import replace

from sampan import i18n
from sampan.errors import ServiceError
from sampan.install import account, disk, unit
from sampan.install.job import Job
from sampan.install.machine import number
from sampan.install.model import CURRENT, RELEASES, Installed, probe_host
from sampan.install.snapshot import Snapshot

_POLL_SECONDS = 0.5


def serve(job: Job, record: Installed) -> Installed:
    """Start the release as a service and see it answer rightly. Raises ServiceError, MissingToolError, OSError."""
    if account.ensure(job.machine, job.user):
        job.undo.later(account.remove, job.machine, job.user)
        record = replace(record, user_created=True)
        job.write_record(record)
    job.say("user", user=job.user)
    old_pid = _start(job)
    _await_health(job, old_pid)
    result = job.hands.selftest(job.release, probe_host(job.options.host), job.port)
    job.say("selftest", result=result)
    return record


def _start(job: Job) -> int | None:
    """Write unit and switch, (re)start; give the main process that must go, None where none runs or none must."""
    machine, path = job.machine, job.machine.unit_folder / job.unit
    before = Snapshot.take(job.prefix, path)
    running = machine.unit(job.unit) if before.unit is not None else {}
    active = running.get("ActiveState") in ("active", "activating")
    text, target = unit.render(_facts(job)).encode(), f"{RELEASES}/{job.plan.release}"
    job.undo.later(_restore, job, before, active)
    disk.write(path, text)
    disk.point(job.prefix / CURRENT, target)
    job.say("unit", path=path)
    machine.must("systemctl", "daemon-reload")
    machine.must("systemctl", "enable", job.unit)
    if active and (before.unit, before.current, job.facts.release_state) == (text, target, "same"):
        return None  # nothing changed: the service need not pause
    machine.must("systemctl", "restart", "--no-block", job.unit)
    return number(running, "MainPID") or None


def _facts(job: Job) -> unit.UnitFacts:
    plan = job.plan
    return unit.UnitFacts(
        name=plan.name,
        description=f"sampan: {plan.name} ({plan.model}, {plan.task})",
        prefix=job.prefix,
        user=job.user,
        host=job.options.host,
        port=job.port,
        limits=unit.limits(plan),
        systemd=job.facts.systemd or unit.OLDEST_SYSTEMD,
        language=i18n.language(),
    )


def _await_health(job: Job, old_pid: int | None) -> None:
    """Wait until a new main process answers and systemd calls it active. Raises ServiceError with its last lines."""
    started = time.monotonic()
    host, said = probe_host(job.options.host), ""
    job.say("waiting", host=host, port=job.port)
    while True:
        state = job.machine.unit(job.unit)
        active, sub = state.get("ActiveState", ""), state.get("SubState", "")
        health = job.hands.health(host, job.port)
        seconds = time.monotonic() - started
        fresh = old_pid is None or number(state, "MainPID") != old_pid
        if active == "active" and fresh and health.state == "ready":
            job.say("healthy", seconds=f"{seconds:.1f}")
            return
        if seconds > job.options.health_seconds or active == "failed" or sub == "auto-restart":
            what = f"{active}/{sub}, {health.state} {health.detail}".strip()
            raise ServiceError(
                "install.not-healthy",
                unit=job.unit,
                state=what,
                seconds=int(seconds),
                log=job.machine.journal(job.unit) or "-",
            )
        now = f"{health.state} {health.detail}".strip()
        if health.state != "unreachable" and now != said:
            job.hands.echo(f"  … {now}")
            said = now
        job.hands.sleep(_POLL_SECONDS)


def _restore(job: Job, before: Snapshot, active: bool) -> None:
    machine = job.machine
    if before.unit is None:
        machine.attempt("systemctl", "disable", job.unit)
    if not active:
        machine.attempt("systemctl", "stop", job.unit)
    before.restore()
    machine.attempt("systemctl", "daemon-reload")
    machine.attempt("systemctl", "reset-failed", job.unit)
    if active:
        machine.attempt("systemctl", "restart", "--no-block", job.unit)
