"""Runs a bundle in an empty copy of its target and says whether it proved itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sampan import i18n
from sampan.errors import BadInputError
from sampan.rehearse import machine, sandbox, steps, transcript, verdict
from sampan.rehearse.machine import MachineFacts, Refusal, Way
from sampan.rehearse.script import Limits, Sandbox
from sampan.rehearse.steps import Line, Record
from sampan.spec.artefacts import Rehearsal, Timing
from sampan.spec.plan import Plan, Reason
from sampan.spec.ports import Progress, Runner, Task
from sampan.spec.target import TargetProfile

STEPS = ("machine", "install", "serve", "models", "selftest", "status", "stop", "log", "rest")


def rehearse(
    folder: Path,
    profile: TargetProfile,
    plan: Plan,
    *,
    busybox: Path,
    runner: Runner,
    progress: Progress,
    work: Path,
    limits: Limits | None = None,
    look: Callable[[str], MachineFacts] = machine.look,
) -> Rehearsal:
    """Install, start, ask, compare, stop: in an empty root folder, without network, as an unprivileged user.

    ``folder`` is the bundle's folder, ``busybox`` a static BusyBox of the target's architecture, ``work`` a folder
    for temporary files; where the rehearsal fails, its whole output stays there as ``<folder>.log``. Never raises
    because the bundle failed or this machine cannot rehearse: the status says so. Raises BadInputError where
    ``folder`` is no bundle.
    """
    if not (folder / "install.sh").is_file():
        raise BadInputError("file.missing", path=str(folder / "install.sh"))
    way = machine.decide(profile, look(profile.arch))
    if isinstance(way, Refusal):
        return skipped(way, profile)
    box = Sandbox(
        work, folder, busybox, way, profile.arch, profile.page_size, plan.port, plan.name, limits or Limits()
    )
    kept = work / f"{folder.name}.log"
    with sandbox.prepared(box, "rehearse", work) as ready, progress.task(_title(way), total=len(STEPS)) as task:
        lines = sandbox.run(ready, runner, timeout=ready.limits.all_steps, on_line=lambda line: _advance(task, line))
        result = conclude(steps.parse(lines), profile, plan, ready)
    if result.status == "failed":
        sandbox.keep_log(lines, kept)
    else:
        kept.unlink(missing_ok=True)
    return result


def skipped(refusal: Refusal, profile: TargetProfile) -> Rehearsal:
    """No rehearsal, and how to get one."""
    why = Reason(f"rehearse.skip.{refusal.key}", refusal.values)
    return Rehearsal("skipped", why, "", profile.page_size, False)


def conclude(record: Record, profile: TargetProfile, plan: Plan, box: Sandbox) -> Rehearsal:
    """The artefact, from what was printed. A sandbox that could not be made is no fault of the bundle."""
    if not record.made:
        detail = " | ".join(record.loose[-3:])
        return skipped(Refusal("sandbox", (("detail", detail),)), profile)
    judged = verdict.judge(record, profile, plan, box.way)
    cpu = box.way.cpu
    return Rehearsal(
        status="failed" if judged.failure else "passed",
        why=judged.failure.reason if judged.failure else None,
        cpu_model=cpu.name,
        page_size=_page_size(record, profile),
        emulated=cpu.emulated,
        checks=judged.checks,
        timings=tuple(Timing(step.name, round(step.seconds, 2)) for step in record.steps),
        transcript=transcript.render(record, judged.checks, profile, box),
    )


def _page_size(record: Record, profile: TargetProfile) -> int:
    step = record.step("machine")
    seen = steps.machine(step) if step else None
    return seen.page_size if seen and seen.page_size else profile.page_size


def _title(way: Way) -> str:
    if way.cpu.emulated:
        return i18n.text("rehearse.title-emulated", cpu=way.cpu.name)
    return i18n.text("rehearse.title-native")


def _advance(task: Task, line: Line) -> None:
    word, _, rest = line.text.partition(" ")
    name = rest.partition(" ")[0]
    if word == "@begin" and name in STEPS:
        task.update(completed=STEPS.index(name), note=i18n.text(f"rehearse.step.{name}"))
