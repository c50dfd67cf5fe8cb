"""A release takes over from the running one without a pause (gateway/handover.py, gateway/succession.py).

The running service is asked by SIGUSR2 and called off by SIGUSR1; how it went it says in systemd's StatusText, and
who serves then in MainPID.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from sampan import i18n
from sampan.errors import ServiceError
from sampan.install.job import Job
from sampan.install.machine import Machine, number
from sampan.install.model import Echo, probe_host
from sampan.install.sums import read as listed

_POLL_SECONDS = 0.5
_ANSWER_LOOKS = 60  # a successor that is called off is given 10 s to end, then made to
_CAUGHT = re.compile(r"^SigCgt:\s*([0-9a-f]+)$", re.MULTILINE)
_ASKED = 0xA00  # SIGUSR1 and SIGUSR2, which would end a process that does not know them
_FAILED = re.compile(r"hand-over \d+: failed: (.*)", re.DOTALL)
_CALLED_OFF = re.compile(r"hand-over \d+: called off")
_KNOWS = "sampan/gateway/handover.py"  # in a release whose service can inherit a listener


def mark(machine: Machine, pid: int) -> str:
    """The process: its number, when it started, and in which boot; no other of its number is taken for it."""
    fields = machine.read(f"proc/{pid}/stat").rpartition(")")[2].split()
    return f"{pid} {fields[19] if len(fields) > 19 else '-'} {machine.read('proc/sys/kernel/random/boot_id').strip()}"


def lives(machine: Machine, marked: str) -> bool:
    """Whether that very process runs."""
    pid = int(marked.partition(" ")[0])
    return machine.alive(pid) and mark(machine, pid) == marked


def can_be_asked(machine: Machine, pid: int) -> bool:
    """Whether the process knows both signals."""
    found = _CAUGHT.search(machine.read(f"proc/{pid}/status"))
    return found is not None and int(found[1], 16) & _ASKED == _ASKED


def can_follow(job: Job) -> bool:
    """Whether the release to be knows how to inherit. Raises BadInputError."""
    return any(name.endswith(_KNOWS) for name in listed(job.release))


def ask(job: Job, marked: str) -> None:
    """Let the release that ``current`` names take over, and wait until it answers.

    Raises ServiceError with the service's last lines where it does not; the running release goes on then.
    """
    machine, name, before = job.machine, job.record.name, _status(job.machine, job.record.name)
    machine.must(*machine.manage(name, "kill"), "--kill-who=main", "--signal=USR2")
    job.say("taking-over", pid=marked.partition(" ")[0])
    started = time.monotonic()
    while not _answers(job, marked):
        failed, seconds = _FAILED.fullmatch(_status(machine, name)), time.monotonic() - started
        if seconds > job.health_seconds or (failed and failed[0] != before):
            raise ServiceError(
                "install.not-taken-over",
                release=job.record.release,
                seconds=int(seconds),
                detail=failed[1] if failed and failed[0] != before else i18n.text("install.no-answer"),
                log=machine.journal(name) or "-",
            )
        job.hands.sleep(_POLL_SECONDS)
    job.say("taken-over", seconds=f"{time.monotonic() - started:.1f}")


def _answers(job: Job, marked: str) -> bool:
    """Whether another main process answers, for the release to be."""
    state = job.machine.state(job.record.name)
    if state.get("ActiveState") != "active" or number(state, "MainPID") in (None, 0, _pid(marked)):
        return False
    record = job.record
    health = job.hands.health(probe_host(record.host), record.port, record.certificate is not None)
    return health.state == "ready" and health.release in ("", f"{job.record.name}-{job.record.release}")


def call_off(machine: Machine, name: str, marked: str, sleep: Callable[[float], None]) -> bool:
    """Whether that very process is the service still, with no successor on its way. Raises ServiceError."""
    if not _is_main(machine, name, marked) or not can_be_asked(machine, _pid(marked)):
        return False
    before = _status(machine, name)
    machine.must(*machine.manage(name, "kill"), "--kill-who=main", "--signal=USR1")
    for _ in range(_ANSWER_LOOKS):
        status = _status(machine, name)
        if not _is_main(machine, name, marked):
            return False
        if status != before and _CALLED_OFF.fullmatch(status):
            return True
        sleep(_POLL_SECONDS)
    return False


def await_end(machine: Machine, marked: str, sleep: Callable[[float], None], echo: Echo) -> None:
    """Wait until the predecessor has answered what it had begun. It ends by itself: when its kept connections were
    silent for 75 s, at most after the time that a request may take.
    """
    if lives(machine, marked):
        echo(i18n.text("install.step.predecessor", pid=_pid(marked)))
    while lives(machine, marked):
        sleep(_POLL_SECONDS)


def _pid(marked: str) -> int:
    return int(marked.partition(" ")[0])


def _is_main(machine: Machine, name: str, marked: str) -> bool:
    pid = number(machine.state(name), "MainPID")
    return pid == _pid(marked) and mark(machine, _pid(marked)) == marked


def _status(machine: Machine, name: str) -> str:
    return machine.state(name).get("StatusText", "")
