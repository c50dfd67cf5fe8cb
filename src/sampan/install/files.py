"""The steps that any installation has: prefix, record, release folder, proof that it may run, switch."""

from __future__ import annotations

import shutil

from sampan import i18n
from sampan.errors import IncompatibleError, MissingToolError
from sampan.install import disk, release
from sampan.install.job import Job
from sampan.install.model import CURRENT, RELEASES, Installed
from sampan.install.snapshot import Snapshot

_PROBE_SECONDS = 120.0  # a cold start of Python from a slow disk


def lay_down(job: Job) -> Installed:
    """Make the prefix ours, then put the release into it. Raises VerificationError, BadInputError, OSError."""
    before, service = job.facts.record, job.options.service
    created = disk.make_folders(job.prefix)
    job.undo.later(disk.remove_empty, created)
    record = Installed(
        name=job.plan.name,
        release=job.plan.release,
        state="installing",
        prefix=str(job.prefix),
        service=service,
        host=job.options.host,
        port=job.port,
        unit=str(job.machine.unit_folder / job.unit) if service else None,
        user=job.user if service else None,
        user_created=before.user_created if before else False,
        created=before.created if before else tuple(map(str, created)),
    )
    job.undo.later(job.write_record, before)
    job.write_record(record)
    _copy(job)
    return record


def _copy(job: Job) -> None:
    if job.facts.release_state == "same":
        job.say("kept", folder=job.release)
        return
    job.undo.later(disk.remove_empty, disk.make_folders(job.release.parent))
    aside = job.release.with_name(f".{job.release.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    if job.facts.release_state == "damaged":
        job.release.rename(aside)
        job.undo.later(aside.rename, job.release)
    release.copy_release(job.options.bundle, job.release, job.hands.progress, i18n.text("install.copying"))
    job.undo.later(shutil.rmtree, job.release, ignore_errors=True)
    job.say("copied", folder=job.release)


def probe(job: Job) -> None:
    """Run the copy's own program: the only proof that mount options and security modules let it run.

    Raises IncompatibleError.
    """
    program = str(job.release / "sampan")
    try:
        done = job.machine.run(program, "--version", timeout=_PROBE_SECONDS)
    except (OSError, MissingToolError) as error:
        raise IncompatibleError("install.refused", program=program, detail=str(error)) from error
    if done.returncode != 0:
        detail = done.output.strip() or f"exit {done.returncode}"
        raise IncompatibleError("install.refused", program=program, detail=detail)
    job.say("probed", version=done.output.strip())


def switch(job: Job) -> None:
    """Let ``current`` name the release. Raises OSError."""
    job.undo.later(Snapshot.take(job.prefix, None).restore)
    disk.point(job.prefix / CURRENT, f"{RELEASES}/{job.plan.release}")
    job.say("switched", folder=job.release)


def tidy(job: Job) -> None:
    """Remove what only an undo would have needed."""
    shutil.rmtree(job.release.with_name(f".{job.release.name}.damaged"), ignore_errors=True)
