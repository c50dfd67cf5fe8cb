"""The steps that any installation has: release folder, proof that it may run, switch."""

from __future__ import annotations

import shutil

from sampan.errors import IncompatibleError, MissingToolError
from sampan.install import disk, release
from sampan.install.job import Job
from sampan.install.model import CURRENT, RELEASES
from sampan.install.source import Source

_PROBE_SECONDS = 120.0  # a cold start of Python from a slow disk


def lay_down(job: Job, source: Source) -> None:
    """Put the release into the prefix, under its name only when it is whole and proved.

    Raises VerificationError, BadInputError, OSError.
    """
    if job.untouched:
        job.say("kept", folder=job.release)
        return
    disk.make_folders(job.release.parent)
    partial = release.aside(job.release, source.aside)
    if source.aside == release.PARTIAL:
        shutil.rmtree(partial, ignore_errors=True)  # of an earlier run that was killed
    source.lay(partial, job.hands.progress)
    source.prove(partial)
    release.settle(partial, job.release)
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
    disk.point(job.prefix / CURRENT, f"{RELEASES}/{job.record.release}")
    job.say("switched", folder=job.release)
