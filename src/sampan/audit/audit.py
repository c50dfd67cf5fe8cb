"""audit: files and a profile in, a report out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sampan import i18n
from sampan.audit import closure, marks, rules
from sampan.audit.families import JUDGES, arch, gpu
from sampan.audit.gather import Gathered, gather
from sampan.audit.gpu.read import CUBIN
from sampan.audit.world import World, fits
from sampan.errors import IncompatibleError
from sampan.spec import layout
from sampan.spec.artefacts import AuditReport, Finding
from sampan.spec.ports import Progress
from sampan.spec.target import TargetProfile

_SEVERITIES = ("error", "warning", "info")


def audit(
    paths: Sequence[Path], profile: TargetProfile, *, bundle: Path | None = None, progress: Progress | None = None
) -> AuditReport:
    """Will these files and folders run on that target?

    ``bundle`` is the root of the bundle that they belong to: its private runtime then provides the libraries, and
    nothing outside of it counts. Without it a bundle is recognised where one of ``paths`` is one or lies in one.
    Files are read only. Raises BadInputError (a path that is missing or unreadable), IncompatibleError (an
    architecture without rules).
    """
    known = rules.load()
    if profile.arch not in known.arch:
        raise IncompatibleError("audit.arch", arch=profile.arch, known=", ".join(sorted(known.arch)))
    root = bundle or next(filter(None, (bundle_root(path, known) for path in paths)), None)
    root = root.resolve() if root else None
    with ExitStack() as stack:
        task = stack.enter_context(progress.task(i18n.text("audit.reading"))) if progress else None
        found = gather(paths, root, known.arch[profile.arch], known, task)
    world = World(
        profile=profile,
        arch=known.arch[profile.arch],
        rules=known,
        files=found.files,
        shown=found.shown,
        damaged=found.damaged,
        aliases=found.aliases,
        bundle=str(root) if root else None,
        digests=marks.digests(found.files),
        set_id=marks.set_id(found.shown),
    )
    return AuditReport(
        subject=root.name if root else ", ".join(path.name for path in paths),
        target=profile.name,
        files=found.files_read,
        elf_files=len(found.shown),
        findings=judge(world, found),
    )


def judge(world: World, found: Gathered) -> tuple[Finding, ...]:
    """Every finding, worst first. Reads nothing."""
    served = closure.simulate(world)
    findings: list[Finding] = []
    for path, shown in found.shown.items():
        if path in world.damaged:
            findings.append(Finding("elf.damaged", "error", shown, (("reason", world.damaged[path].reason),)))
            continue
        facts = world.files[path]
        if facts.machine == CUBIN:  # runs on the card, whatever the processor is
            findings += gpu.judge(path, world, served)
            continue
        foreign = list(arch.judge(path, world, served))
        findings += foreign
        if not foreign and fits(facts, world.arch):  # of a foreign file the other rules would only repeat that
            findings += [finding for each in JUDGES for finding in each(path, world, served)]
    return tuple(sorted(findings, key=_worst_first))


def _worst_first(finding: Finding) -> tuple[int, str, str, tuple[tuple[str, str], ...]]:
    return _SEVERITIES.index(finding.severity), finding.code, finding.path, finding.values


def bundle_root(path: Path, known: rules.Rules) -> Path | None:
    """The bundle that ``path`` is or lies in: the nearest folder with a plan and a private runtime."""
    resolved = path.resolve()
    for folder in (resolved, *resolved.parents):
        if (folder / "plan.json").is_file() and (folder / known.runtime / layout.LIBRARIES).is_dir():
            return folder
    return None
