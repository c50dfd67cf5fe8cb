"""The steps that make it a service: user, unit, switch, start, health, self-test."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from sampan.errors import ServiceError
from sampan.install import account, boot_guard, disk, files, journal, key_file
from sampan.install.job import Job
from sampan.install.machine import number
from sampan.install.model import CURRENT, RELEASES, probe_host, unit_name

_POLL_SECONDS = 0.5


def go_live(job: Job) -> None:
    """Let the release take over and see it answer rightly. Raises ServiceError, MissingToolError, OSError."""
    if job.record.user is not None:
        account.ensure(job.machine, job.record.user)
        key_file.hand_over(job.machine, job.record)
        job.say("user", user=job.record.user)
    boot_guard.arm(job.prefix, job.pending, job.machine)
    journal.write(job.prefix, replace(job.pending, stage=journal.SWITCHING))
    if job.unit is None:
        files.switch(job)
        return
    old_pid = _start(job, job.unit)
    _await_health(job, old_pid)
    result = job.hands.selftest(job.release, probe_host(job.record.host), job.record.port)
    job.say("selftest", result=result)


def _start(job: Job, text: str) -> int | None:
    """Write unit and switch, (re)start; give the main process that must go, None where none runs or none must."""
    machine, name, before = job.machine, job.record.name, job.pending
    path, target = machine.unit_file(name), f"{RELEASES}/{job.record.release}"
    running = machine.state(name) if before.unit is not None else {}
    disk.make_folders(path.parent)
    disk.write(path, text.encode())
    disk.point(job.prefix / CURRENT, target)
    job.say("unit", path=path)
    machine.must(*machine.manage(name, "daemon-reload"))
    machine.must(*machine.manage(name, "enable"))
    with suppress(OSError):  # systemd does not sync its link for the start at boot
        disk.sync_folder(path.parent / "multi-user.target.wants")
    if before.active and (before.unit, before.current) == (text, target) and job.untouched:
        return None  # nothing changed: the service need not pause
    machine.must(*machine.manage(name, "restart", "--no-block"))
    return number(running, "MainPID") or None


def _await_health(job: Job, old_pid: int | None) -> None:
    """Wait until a new main process answers and systemd calls it active. Raises ServiceError with its last lines."""
    started = time.monotonic()
    name, host, said = job.record.name, probe_host(job.record.host), ""
    job.say("waiting", host=host, port=job.record.port)
    while True:
        state = job.machine.state(name)
        active, sub = state.get("ActiveState", ""), state.get("SubState", "")
        health = job.hands.health(host, job.record.port)
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
