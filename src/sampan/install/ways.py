"""How a release takes the place of the running one: beside it, without a pause, or by a restart, and why."""

from __future__ import annotations

from dataclasses import dataclass

from sampan import i18n
from sampan.install import room, takeover, unit_diff
from sampan.install.job import Job
from sampan.install.machine import number
from sampan.install.model import SCRIPT
from sampan.install.source import plan_of


@dataclass(frozen=True)
class Way:
    """``main``: the process to take over from (``takeover.mark``); None means a restart, and ``why`` tells people.

    ``lifted``: the service's memory limit is to be raised meanwhile, by ``more`` bytes. ``needed``: bytes that the
    second release takes at most.
    """

    main: str | None = None
    why: str = ""
    lifted: bool = False
    needed: int = 0
    more: int = 0


def choose(job: Job) -> Way:
    """Changes nothing. Raises BadInputError, ServiceError."""
    before, after = job.pending.unit, job.unit
    if before is None or after is None or not job.pending.active:
        return Way()  # nothing runs: there is nothing to say
    pid = number(job.machine.state(job.record.name), "MainPID") or 0
    why = _against(job, before, after, pid)
    return Way(why=why) if why else _beside(job, pid, before, after)


def _against(job: Job, before: str, after: str, pid: int) -> str | None:
    """Why no hand-over would be sound."""
    systemd = job.machine.systemd_version()
    differing = unit_diff.for_a_start_only(before, after, systemd)
    if job.restart:
        return _why("asked")
    if job.machine.scope == SCRIPT or systemd is None:
        return _why("no-systemd")
    if differing:
        return _why("unit", directives=", ".join(differing))
    if not takeover.can_be_asked(job.machine, pid):
        return _why("old-service")
    return None if takeover.can_follow(job) else _why("old-release", release=job.record.release)


def _beside(job: Job, pid: int, old: str, new: str) -> Way:
    """The limits of both together; an administrator's own limit is left as it is."""
    needed = plan_of(job.release).engine_bytes_at_most
    after = unit_diff.memory_limit(new)
    return Way(
        main=takeover.mark(job.machine, pid),
        lifted=room.is_ours(job.machine, job.record.name, old),
        needed=needed,
        more=max(needed, after[1] if after else 0),
    )


def short_of_memory(job: Job, way: Way) -> Way | None:
    """The restart that is left where memory for a second release lacks; None where there is enough."""
    pid = int((way.main or "0").partition(" ")[0])
    free = room.enough(lambda: job.hands.free_memory(pid), way.needed, job.hands.sleep)
    return None if free is None else Way(why=_why("memory", needed=way.needed >> 20, free=free >> 20))


def _why(key: str, **values: object) -> str:
    return i18n.text(f"install.restart.{key}", **values)
