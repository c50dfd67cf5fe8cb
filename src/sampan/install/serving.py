"""The steps that make it a service: user, unit, switch, start, health, self-test."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from sampan.errors import ServiceError
from sampan.install import account, boot_guard, disk, files, journal, key_file, room, takeover, ways
from sampan.install.job import Job
from sampan.install.machine import number
from sampan.install.model import CURRENT, RELEASES, probe_host, unit_name
from sampan.install.ways import Way

_POLL_SECONDS = 0.5


def go_live(job: Job) -> None:
    """Let the release take over and see it answer rightly. Raises ServiceError, MissingToolError, OSError."""
    if job.record.user is not None:
        account.ensure(job.machine, job.record.user)
        key_file.hand_over(job.machine, job.record)
        job.say("user", user=job.record.user)
    way = ways.choose(job)
    boot_guard.arm(job.prefix, job.pending, job.machine)
    _begin(job, way)
    if job.unit is None:
        files.switch(job)
        return
    if way.main is not None:
        way = _with_room(job, way)
    same = _unchanged(job)
    _write(job, job.unit)
    if way.main is not None:
        takeover.ask(job, way.main)
    else:
        _start(job, way, same=same)
    record = job.record
    result = job.hands.selftest(job.release, probe_host(record.host), record.port, record.certificate)
    job.say("selftest", result=result)


def _begin(job: Job, way: Way) -> None:
    """From now on unit and ``current`` may differ from how they were."""
    journal.write(job.prefix, replace(job.pending, stage=journal.SWITCHING, main=way.main, lifted=way.lifted))


def _with_room(job: Job, way: Way) -> Way:
    """The same with memory for two releases; a restart where the machine has not so much."""
    name, text = job.record.name, job.pending.unit or ""
    if way.lifted:
        room.lift(job.machine, name, text, way.more)
    short = ways.short_of_memory(job, way)
    if short is None:
        return way
    if way.lifted:
        room.settle(job.machine, name)
    _begin(job, short)
    return short


def _unchanged(job: Job) -> bool:
    """Whether the running service is what it is to be: it need not pause."""
    before, target = job.pending, f"{RELEASES}/{job.record.release}"
    return before.active and (before.unit, before.current) == (job.unit, target) and job.untouched


def _write(job: Job, text: str) -> None:
    """Unit, ``current`` and the start at boot; what runs is not touched."""
    machine, name = job.machine, job.record.name
    path = machine.unit_file(name)
    disk.make_folders(path.parent)
    disk.write(path, text.encode())
    disk.point(job.prefix / CURRENT, f"{RELEASES}/{job.record.release}")
    job.say("unit", path=path)
    machine.must(*machine.manage(name, "daemon-reload"))
    machine.must(*machine.manage(name, "enable"))
    with suppress(OSError):  # systemd does not sync its link for the start at boot
        disk.sync_folder(path.parent / "multi-user.target.wants")


def _start(job: Job, way: Way, *, same: bool) -> None:
    """(Re)start the service unless it is what it is to be, and see it answer."""
    machine, name = job.machine, job.record.name
    running = number(machine.state(name), "MainPID") or None
    if same:
        running = None
    else:
        if way.why:
            job.say("restarting", why=way.why)
        machine.must(*machine.manage(name, "restart", "--no-block"))
    _await_health(job, running)


def _await_health(job: Job, old_pid: int | None) -> None:
    """Wait until a new main process answers and systemd calls it active. Raises ServiceError with its last lines."""
    started = time.monotonic()
    name, host, said = job.record.name, probe_host(job.record.host), ""
    job.say("waiting", host=host, port=job.record.port)
    while True:
        state = job.machine.state(name)
        active, sub = state.get("ActiveState", ""), state.get("SubState", "")
        health = job.hands.health(host, job.record.port, job.record.certificate is not None)
        seconds = time.monotonic() - started
        fresh = old_pid is None or number(state, "MainPID") != old_pid
        if active == "active" and fresh and health.state == "ready":
            job.say("healthy", seconds=f"{seconds:.1f}")
            return
        if seconds > job.health_seconds or active == "failed" or sub == "auto-restart":
            what = f"{active}/{sub}, {health.state} {health.detail}".strip()
            raise ServiceError(
                "install.not-healthy",
                unit=unit_name(name),
                state=what,
                seconds=int(seconds),
                log=job.machine.journal(name) or "-",
            )
        now = f"{health.state} {health.detail}".strip()
        if health.state != "unreachable" and now != said:
            job.hands.echo(f"  … {now}")
            said = now
        job.hands.sleep(_POLL_SECONDS)
