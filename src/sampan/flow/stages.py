"""Each stage with what it needs of the world: the same functions serve ``ship`` and the single commands."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sampan.errors import UsageError, VerificationError
from sampan.flow.signing_keys import Signing
from sampan.flow.tools import Tools
from sampan.spec.artefacts import (
    AuditReport,
    BundleFolder,
    EngineBuild,
    Package,
    Rehearsal,
    RuntimeTree,
    Wheelhouse,
)
from sampan.spec.plan import Plan, Reason
from sampan.spec.target import GpuFacts, TargetProfile
from sampan.spec.weights import WeightsInfo


def survey(target: str) -> TargetProfile:
    """A known name, ``this``, or a profile file. Raises UsageError, BadInputError."""
    from sampan.survey.resolve import resolve

    return resolve(target)


def weights(source: str, quantization: str, tools: Tools) -> WeightsInfo:
    """A GGUF, a folder, a ready example, what a hub has, or the artefact of an earlier run (``.json``).

    ``quantization``: auto, or any type that ``weights quantize`` makes.
    """
    from sampan.flow import importing, quantizing

    if source.endswith(".json") and Path(source).is_file():
        from sampan.spec.codec import load

        return load(WeightsInfo, Path(source))
    wanted = quantization.lower()
    if wanted in ("auto", "f32", "f16", "q8_0"):
        return importing.opened(source, wanted, importing.ORIGINAL if wanted == "auto" else wanted, tools)
    return quantizing.only(source, quantization, tools)


def plan(info: WeightsInfo, profile: TargetProfile, options: Mapping[str, object]) -> Plan:
    """Options are PlanOptions' fields by name; None means that the plan decides."""
    from sampan.plan.options import PlanOptions
    from sampan.plan.planner import make_plan

    given = {name: value for name, value in options.items() if value is not None}
    return make_plan(info, profile, PlanOptions(**given))  # type: ignore[arg-type]  # names are PlanOptions' own


def build(made: Plan, tools: Tools) -> EngineBuild:
    """The engine's executables for every variant of the plan."""
    from sampan.build.engine import build as run

    return run(made, runner=tools.runner, fetcher=tools.fetcher, store=tools.store, progress=tools.progress)


def launcher(arch: str, tools: Tools) -> Path:
    """The static launcher of that architecture."""
    from sampan.build.launcher import build as run

    return run(arch, runner=tools.runner, store=tools.store)


def runtime(arch: str, tools: Tools, *, refresh: bool = False) -> RuntimeTree:
    """The private Python. Its .pyc files are made by this machine's own private Python."""
    from sampan.edge.apt_settings import debian_sources
    from sampan.runtime.tree import make

    def tree(wanted: str, host: RuntimeTree | None) -> RuntimeTree:
        return make(
            wanted,
            launcher=launcher(wanted, tools),
            runner=tools.runner,
            fetcher=tools.fetcher,
            store=tools.store,
            progress=tools.progress,
            sources=debian_sources,
            host=host,
            refresh=refresh,
        )

    here = platform.machine()
    return tree(arch, None if arch == here else tree(here, None))


def wheelhouse(tree: RuntimeTree, tools: Tools) -> Wheelhouse:
    """sampan and its wheels for that runtime."""
    from sampan.wheelhouse.make import make

    here = platform.machine()
    host = tree if tree.arch == here else runtime(here, tools)
    return make(tree, host, runner=tools.runner, fetcher=tools.fetcher, store=tools.store, progress=tools.progress)


def assemble(
    made: Plan,
    profile: TargetProfile,
    info: WeightsInfo,
    engine: EngineBuild,
    tree: RuntimeTree,
    wheels: Wheelhouse,
    out: Path,
    tools: Tools,
) -> BundleFolder:
    """The bundle's folder below ``out``, sealed so that it verifies; not yet rehearsed."""
    from importlib import resources

    from sampan.bundle import layout
    from sampan.bundle.assemble import assemble as run
    from sampan.bundle.parts import BundleParts
    from sampan.bundle.seal import seal
    from sampan.papers import sbom

    papers = {layout.SBOM: sbom.make(made, engine, tree, wheels, info)}
    with resources.as_file(resources.files("sampan") / "data" / "target") as scripts:
        parts = BundleParts(made, profile, info, engine, tree, wheels, launcher(made.arch, tools), scripts)
        folder = run(parts, out, papers=papers, private=(str(tools.store.root),), progress=tools.progress)
    return seal(Path(folder.path), None, progress=tools.progress)


def audit(
    paths: list[Path], profile: TargetProfile, tools: Tools, *, bundle: Path | None = None, private: bool = False
) -> AuditReport:
    """Read every file below ``paths`` and say whether it will run there.

    ``private``: files outside of any bundle are served by the private runtime of that architecture.
    """
    from sampan.audit.audit import audit as run
    from sampan.bundle import layout
    from sampan.bundle.sums import content_digest

    served = Path(runtime(profile.arch, tools).path) if private else None
    cache = tools.store.scratch("audit", {"facts": 1})
    report = run(paths, profile, bundle=bundle, runtime=served, cache=cache, progress=tools.progress)
    root = bundle or paths[0]
    sealed = len(paths) == 1 and (root / layout.SUMS).is_file()
    return replace(report, bundle_digest=content_digest(root)) if sealed else report


def gpu(text: str) -> GpuFacts:
    """``Tesla P4@535.161.07``, or ``6.1@535`` by compute capability; without the driver where it is not known.

    Raises UsageError for a card whose capability nobody knows.
    """
    from sampan.audit.gpu.rules import capability_of, load

    card, _, driver = (part.strip() for part in text.partition("@"))
    numbers = card.split(".")
    if len(numbers) == 2 and all(each.isdecimal() for each in numbers):
        return GpuFacts(f"sm_{''.join(numbers)}", card, driver or None)
    if capability_of(card, load()) is None:
        raise UsageError("audit.gpu", card=card, known=", ".join(load().cards))
    return GpuFacts(card, None, driver or None)


def rehearse(folder: Path, profile: TargetProfile, made: Plan, tools: Tools) -> Rehearsal:
    """Run the bundle in an empty copy of the target. Cached where it passed: the same bytes pass again."""
    from sampan.flow.rehearsals import rehearse_cached

    return rehearse_cached(folder, profile, made, tools)


def not_rehearsed(folder: Path, profile: TargetProfile) -> Rehearsal:
    """Where the user does not want one; the bundle says so."""
    from sampan.bundle.sums import content_digest

    unwanted = Rehearsal("skipped", Reason("rehearse.not-wanted"), "", profile.page_size, emulated=False)
    return replace(unwanted, bundle_digest=content_digest(folder))


def pack(
    folder: Path,
    rehearsal: Rehearsal | None,
    report: AuditReport | None,
    out: Path,
    tools: Tools,
    signing: Signing | None = None,
) -> Package:
    """Seal with what was proved, sign where a key is given, then write the tar.

    Raises BadInputError for a key that cannot sign, VerificationError where the folder is not the one that was
    sealed, audited and rehearsed.
    """
    from sampan.bundle.pack import pack as run
    from sampan.bundle.seal import seal
    from sampan.flow import trusting

    signer = signing.fingerprint() if signing else None
    _refuse_changed(folder, rehearsal, report)
    seal(folder, rehearsal, audit=report, signer=signer, progress=tools.progress)
    if signing:
        trusting.sign(folder, signing.key, signing.password, tools.progress)
    return run(folder, out, progress=tools.progress)


def _refuse_changed(folder: Path, rehearsal: Rehearsal | None, report: AuditReport | None) -> None:
    """Sealing vouches for what lies in the folder, so nothing may have changed since it was proved."""
    from sampan.bundle.sums import content_digest
    from sampan.bundle.verify import verify

    problems = verify(folder)
    if problems:
        raise VerificationError("pack.changed", path=str(folder), count=len(problems), first=problems[0].message)
    digest = content_digest(folder)
    for stage, proved in (("audit", report), ("rehearse", rehearsal)):
        if proved is not None and proved.bundle_digest != digest:
            raise VerificationError("pack.other", path=str(folder), stage=stage)
