"""The whole way once: from a target's name and a model to one tested file to carry across."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sampan.errors import IncompatibleError, RehearsalError, SampanError
from sampan.flow import stages
from sampan.flow.artefacts import WorkFolder
from sampan.flow.signing_keys import Signing
from sampan.flow.tools import Tools
from sampan.spec.artefacts import AuditReport, Package, Rehearsal
from sampan.spec.codec import to_data as value_data
from sampan.spec.plan import Plan
from sampan.spec.target import TargetProfile
from sampan.spec.weights import WeightsInfo

T = TypeVar("T")

RESULT_SCHEMA = "sampan/ship/1"


@dataclass(frozen=True)
class ShipRequest:
    """What the user asks for. ``work`` None means ``<out>/<name>-<release>.work``."""

    weights: str
    target: str
    out: Path
    name: str | None = None
    release: int = 1
    quantization: str = "auto"
    work: Path | None = None
    rehearse: bool = True
    allow_findings: bool = False
    sign: Signing | None = None
    limits: dict[str, int | None] = field(default_factory=dict)  # memory_bytes, cores, concurrency, max_tokens, port


@dataclass(frozen=True)
class StageDone:
    """One stage ended well: its value, its artefact's path where written, seconds of wall time."""

    stage: str
    value: Any
    seconds: float


@dataclass(frozen=True)
class Shipped:
    """All that ``ship`` has to say at the end."""

    plan: Plan
    audit: AuditReport
    rehearsal: Rehearsal
    package: Package
    work: Path
    stages: tuple[StageDone, ...]


def ship(request: ShipRequest, tools: Tools, observe: Callable[[StageDone], None] = lambda _: None) -> Shipped:
    """Run every stage. Each result is cached by its inputs, so a repeated or interrupted run goes on.

    Raises SampanError with ``stage`` set to the name of the stage that failed.
    """
    if request.sign:
        request.sign.fingerprint()  # a key that cannot sign is told before the work, not after it
    return _Voyage(request, tools, observe).run()


class _Voyage:
    """One run of ``ship``: the stages in their order, each timed and its artefact kept."""

    def __init__(self, request: ShipRequest, tools: Tools, observe: Callable[[StageDone], None]) -> None:
        self._request, self._tools, self._observe = request, tools, observe
        self._done: list[StageDone] = []
        self._work: WorkFolder | None = None

    def run(self) -> Shipped:
        request, tools = self._request, self._tools
        profile = self._stage("survey", lambda: stages.survey(request.target))
        weights = self._stage("weights", lambda: stages.weights(request.weights, request.quantization, tools))
        plan = self._stage("plan", lambda: stages.plan(weights, profile, self._plan_options()))
        work = self._work_folder(plan)
        with work.held():
            return self._prove(work, profile, weights, plan)

    def _prove(self, work: WorkFolder, profile: TargetProfile, weights: WeightsInfo, plan: Plan) -> Shipped:
        """The stages that leave something in the work folder."""
        request, tools = self._request, self._tools
        self._open(work)
        engine = self._stage("build", lambda: stages.build(plan, tools))
        runtime = self._stage("runtime", lambda: stages.runtime(plan.arch, tools))
        wheels = self._stage("wheelhouse", lambda: stages.wheelhouse(runtime, tools))
        folder = self._stage(
            "bundle",
            lambda: stages.assemble(plan, profile, weights, engine, runtime, wheels, work.bundles, tools),
        )
        path = Path(folder.path)
        audit = self._stage("audit", lambda: stages.audit([path], profile, tools, bundle=path))
        if not request.allow_findings:
            _refuse_errors(audit, work)
        rehearsal = self._stage("rehearse", lambda: self._rehearse(path, profile, plan))
        _refuse_failure(rehearsal, work)
        package = self._stage("pack", lambda: stages.pack(path, rehearsal, audit, request.out, tools, request.sign))
        return Shipped(plan, audit, rehearsal, package, work.path, tuple(self._done))

    def _plan_options(self) -> dict[str, object]:
        return {**self._request.limits, "name": self._request.name, "release": self._request.release}

    def _work_folder(self, plan: Plan) -> WorkFolder:
        """Known only now, since the plan gives the name."""
        request = self._request
        return WorkFolder(request.work or request.out / f"{plan.name}-{plan.release}.work")

    def _open(self, work: WorkFolder) -> None:
        """Write what the first stages found; what an earlier run left of the later ones does not belong to it."""
        work.forget_after("plan")
        for done in self._done:
            work.save(done.stage, done.value)
        self._work = work

    def _rehearse(self, folder: Path, profile: TargetProfile, plan: Plan) -> Rehearsal:
        if self._request.rehearse:
            return stages.rehearse(folder, profile, plan, self._tools)
        return stages.not_rehearsed(folder, profile)

    def _stage(self, name: str, work: Callable[[], T]) -> T:
        started = time.monotonic()
        with _of_stage(name):
            value = work()
            if self._work:
                self._work.save(name, value)
        done = StageDone(name, value, time.monotonic() - started)
        self._done.append(done)
        self._observe(done)
        return value


@contextmanager
def _of_stage(name: str) -> Iterator[None]:
    """Name the stage in any error that leaves the block."""
    try:
        yield
    except SampanError as error:
        error.stage = name
        raise


@_of_stage("audit")
def _refuse_errors(audit: AuditReport, work: WorkFolder) -> None:
    if audit.errors:
        first = next(finding for finding in audit.findings if finding.severity == "error")
        raise IncompatibleError(
            "audit.refused", errors=audit.errors, path=first.path, code=first.code, report=str(work.file("audit"))
        )


@_of_stage("rehearse")
def _refuse_failure(rehearsal: Rehearsal, work: WorkFolder) -> None:
    if rehearsal.status == "failed":
        raise RehearsalError("rehearse.failed", reason=rehearsal.reason, report=str(work.file("rehearse")))


def pack_work(
    work: Path, out: Path, tools: Tools, *, allow_findings: bool = False, sign: Signing | None = None
) -> Package:
    """Pack from a work folder's artefacts. Raises IncompatibleError, RehearsalError as ``ship`` does."""
    folder = WorkFolder(work)
    audit, rehearsal = folder.load("audit", AuditReport), folder.load("rehearse", Rehearsal)
    if not allow_findings:
        _refuse_errors(audit, folder)
    _refuse_failure(rehearsal, folder)
    with folder.held():
        package = stages.pack(folder.bundle(), rehearsal, audit, out, tools, sign)
        folder.save("pack", package)
    return package


def to_data(shipped: Shipped) -> dict[str, Any]:
    """The JSON form of the whole run, for ``ship --json`` and the benchmarks."""
    return {
        "schema": RESULT_SCHEMA,
        "package": value_data(shipped.package),
        "plan": value_data(shipped.plan),
        "audit": value_data(shipped.audit),
        "rehearsal": value_data(shipped.rehearsal),
        "work": str(shipped.work),
        "stages": [{"stage": done.stage, "seconds": round(done.seconds, 3)} for done in shipped.stages],
    }
