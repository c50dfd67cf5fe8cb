"""``install``: release folder, user, unit, switch, start, proof; a step that fails undoes all before it."""

from __future__ import annotations

from dataclasses import replace

from sampan.install import disk, files, preflight, serving
from sampan.install.facts import gather, plan_of
from sampan.install.job import Hands, Job, Undo
from sampan.install.machine import Machine
from sampan.install.model import CURRENT, DEFAULT_HOME, Installed, InstallOptions, checked_name, probe_host


def install(options: InstallOptions, hands: Hands) -> Installed:
    """Install the bundle and prove that it serves; give the record that was left in the prefix.

    Raises IncompatibleError (preflight, all problems at once), BadInputError, VerificationError, FilesystemError,
    ServiceError; whatever is raised, what ran before runs again and nothing new is left.
    """
    plan = plan_of(options.bundle)
    checked_name(plan.name)
    prefix = (options.prefix or DEFAULT_HOME / plan.name).absolute()
    port = plan.port if options.port is None else options.port
    machine = Machine(hands.runner, hands.root)
    with disk.filesystem_errors(prefix):
        facts = gather(machine, options.bundle, plan, prefix, port)
        preflight.check(plan, options, prefix, port, facts)
        job = Job(plan, options, prefix, port, facts, machine, hands, Undo(hands.echo))
        job.say("preflight")
        for notice in preflight.notices(plan, options, facts):
            hands.echo(f"  ! {notice.text()}")
        return _all_or_nothing(job)


def _all_or_nothing(job: Job) -> Installed:
    try:
        record = files.lay_down(job)
        files.probe(job)
        if job.options.service:
            record = serving.serve(job, record)
        else:
            files.switch(job)
        done = replace(record, state="installed")
        job.write_record(done)
    except BaseException:
        job.say("undo")
        if job.undo.run():
            job.say("undone")
        raise
    files.tidy(job)
    _farewell(job)
    return done


def _farewell(job: Job) -> None:
    current = job.prefix / CURRENT
    if job.options.service:
        job.say("serves", host=probe_host(job.options.host), port=job.port, sampan=current / "sampan")
    else:
        job.say("by-hand", command=current / "start.sh")
