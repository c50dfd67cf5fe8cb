"""audit: files and a profile in, a report out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from sampan import disk, i18n
from sampan.audit import archive_findings, closure, marks, not_elf, rules
from sampan.audit.families import JUDGES, arch, gpu
from sampan.audit.gather import Gathered, gather
from sampan.audit.gpu.read import CUBIN
from sampan.audit.kinds import fits
from sampan.audit.subjects import Archive, Subjects, collect, sayable
from sampan.audit.world import World
from sampan.errors import IncompatibleError
from sampan.spec import layout
from sampan.spec.artefacts import AuditReport, Finding
from sampan.spec.ports import Progress, Task
from sampan.spec.target import TargetProfile

_SEVERITIES = ("error", "warning", "info")


def audit(
    paths: Sequence[Path],
    profile: TargetProfile,
    *,
    bundle: Path | None = None,
    runtime: Path | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Will these files, folders and archives run on that target?

    ``bundle`` is the root of the bundle that they belong to: its private runtime then provides the libraries, and
    nothing outside of it counts. Without it a bundle is recognised where one of ``paths`` is one, holds one (a tar)
    or lies in one. ``runtime`` is a private runtime (a folder as a bundle's ``runtime/``) that serves files outside
    of any bundle; without it the target's own libraries do. ``cache``: a folder that keeps what was read of each
    content. Files are read only. Raises BadInputError (a path that is missing or unreadable), IncompatibleError (an
    architecture without rules), FilesystemError (no room to open archives).
    """
    known = rules.load()
    if profile.arch not in known.arch:
        raise IncompatibleError("audit.arch", arch=profile.arch, known=", ".join(sorted(known.arch)))
    with ExitStack() as stack:
        task: Task = stack.enter_context(progress.task(i18n.text("audit.reading"))) if progress else _Silent()
        place = Path(tempfile.gettempdir()).resolve()
        with disk.filesystem_errors(place):
            scratch = stack.enter_context(disk.new_folder(place / "sampan-audit"))
        subjects = collect(paths, scratch, task.advance)
        task.update(completed=0, total=len(subjects.files))
        root = bundle or next(_bundles(paths, subjects.archives, known), None)
        root = root.resolve() if root else None
        _name_by_bundle(subjects, root, scratch)
        serving = root / known.runtime if root else runtime.resolve() if runtime else None
        found = gather(subjects, serving, known.arch[profile.arch], cache, lambda _: task.advance())
        world = World(
            profile=profile,
            arch=known.arch[profile.arch],
            rules=known,
            files=found.files,
            shown=found.shown,
            damaged=found.damaged,
            aliases=found.aliases,
            bundle=str(root) if root else None,
            runtime=str(serving) if serving else None,
            digests=marks.digests(found.files),
            set_id=marks.set_id(found.shown, subjects.archives),
            unpacked={archive.folder: archive.shown for archive in subjects.archives},
            wheels=tuple(archive.folder for archive in subjects.archives if archive.name.endswith(".whl")),
        )
        findings = _ordered(
            [*judge(world, found, subjects.archives), *_not_elf(subjects, found, paths, world.bundle)]
        )
    subject = root.name if root else ", ".join(path.name for path in paths)
    return AuditReport(sayable(subject), profile.name, found.files_read, len(found.shown), findings)


class _Silent:
    """A task that shows nothing."""

    def advance(self, amount: float = 1) -> None:
        """See ports.Task."""

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
        """See ports.Task."""


def judge(world: World, found: Gathered, archives: Sequence[Archive] = ()) -> tuple[Finding, ...]:
    """Every finding, worst first. Reads the metadata of wheels and nothing else."""
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
        same = all(finding.code == "arch.module-name" for finding in foreign)  # a wrong name on a right file
        if same and fits(facts, world.arch):  # of a foreign file the other rules would only repeat that
            findings += [finding for each in JUDGES for finding in each(path, world, served)]
    for archive in archives:
        findings += archive_findings.judge(archive, world)
    return _ordered(findings)


def _ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(map(_sayable, findings), key=_worst_first))


def _not_elf(subjects: Subjects, found: Gathered, paths: Sequence[Path], bundle: str | None) -> Iterator[Finding]:
    """What is said of the other files. Members of archives are not among them: only some were written out."""
    inside = tuple(archive.folder + "/" for archive in subjects.archives)
    others = {
        path: shown
        for path, shown in subjects.files.items()
        if path not in found.shown and not path.startswith(inside)
    }
    yield from not_elf.judge(others, frozenset(str(path.resolve()) for path in paths), bundle)


def _sayable(finding: Finding) -> Finding:
    """Names in it come from files and archives: none may break a terminal or the report's JSON."""
    values = tuple((key, sayable(value)) for key, value in finding.values)
    return replace(finding, path=sayable(finding.path), values=values)


def _worst_first(finding: Finding) -> tuple[int, str, str, tuple[tuple[str, str], ...]]:
    return _SEVERITIES.index(finding.severity), finding.code, finding.path, finding.values


def _bundles(paths: Sequence[Path], archives: Sequence[Archive], known: rules.Rules) -> Iterator[Path]:
    """The bundles that the paths are, lie in, or hold as an archive's only folder."""
    yield from filter(None, (bundle_root(path, known) for path in paths))
    for archive in archives:
        plans = [name for name in archive.contents.files if name.endswith("plan.json") and name.count("/") == 1]
        yield from filter(None, (bundle_root(Path(archive.folder, name).parent, known) for name in plans))


def bundle_root(path: Path, known: rules.Rules) -> Path | None:
    """The bundle that ``path`` is or lies in: the nearest folder with a plan and a private runtime."""
    resolved = path.resolve()
    for folder in (resolved, *resolved.parents):
        if (folder / "plan.json").is_file() and (folder / known.runtime / layout.LIBRARIES).is_dir():
            return folder
    return None


def _name_by_bundle(subjects: Subjects, root: Path | None, scratch: Path) -> None:
    """Files of a bundle are named by their place in it; those inside of an archive keep the archive's name."""
    if root and not root.is_relative_to(scratch):
        prefix = f"{root}/"
        for path in subjects.files:
            if path.startswith(prefix):
                subjects.files[path] = path[len(prefix) :]
