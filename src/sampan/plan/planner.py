"""Fits a model to a target. Pure: the same weights, profile and options give the same Plan."""

from __future__ import annotations

from sampan.errors import IncompatibleError
from sampan.plan import memory, names, threads
from sampan.plan.options import PlanOptions
from sampan.plan.reasons import reasons
from sampan.plan.remedy import remedy
from sampan.plan.settings import candidates
from sampan.plan.sizes import human
from sampan.plan.variants import runnable
from sampan.spec.plan import EngineSettings, MemoryRow, Plan
from sampan.spec.target import TargetProfile
from sampan.spec.weights import WeightsInfo

ENGINE = "llama.cpp"


def make_plan(weights: WeightsInfo, profile: TargetProfile, options: PlanOptions | None = None) -> Plan:
    """What will run on the target, and why.

    Raises UsageError (``plan.name``, ``plan.max-tokens``) and IncompatibleError (``variant.arch``,
    ``variant.none``, ``plan.memory`` with what would make it fit).
    """
    options = options or PlanOptions()
    name = names.check(options.name) if options.name is not None else names.default(weights.name, profile.name)
    variants = runnable(profile.arch, profile.cpu.features, features_known=profile.cpu.features_known)
    available = available_memory(profile, options)
    settings, rows = _fit(weights, profile, options, available)
    return Plan(
        name=name,
        release=options.release,
        target=profile.name,
        arch=profile.arch,
        page_size=profile.page_size,
        engine=ENGINE,
        variants=variants,
        task=weights.task,
        model=options.model_id or weights.name,
        quantization=weights.quantization,
        settings=settings,
        memory=rows,
        memory_total_bytes=memory.total(rows),
        memory_available_bytes=available,
        reasons=reasons(weights, profile, options, settings=settings, variants=variants, available=available),
        port=options.port,
    )


def available_memory(profile: TargetProfile, options: PlanOptions) -> int | None:
    """Bytes that the service may use: as the user says, else the machine's memory or cgroup limit; None: unknown."""
    if options.memory_bytes is not None:
        return options.memory_bytes
    known = [size for size in (profile.memory_bytes, profile.memory_limit_bytes) if size is not None]
    return min(known) if known else None


def _fit(
    weights: WeightsInfo, profile: TargetProfile, options: PlanOptions, available: int | None
) -> tuple[EngineSettings, tuple[MemoryRow, ...]]:
    """The most generous candidate that fits; without a known size, the first."""
    tried = []
    for settings in candidates(
        weights, options, threads=_threads(profile, options), memory_known=available is not None
    ):
        rows = memory.rows(weights, settings)
        if available is None or memory.total(rows) <= available:
            return settings, rows
        tried.append(memory.total(rows))
    raise IncompatibleError(
        "plan.memory",
        model=weights.name,
        target=profile.name,
        needed=human(min(tried)),
        available=human(available or 0),
        remedy=remedy(weights, available or 0),
    )


def _threads(profile: TargetProfile, options: PlanOptions) -> int:
    if options.cores is not None:
        return threads.choose(options.cores, quota=profile.cpu_quota)
    cores = profile.cpu.cores
    if cores is None:
        return threads.DECIDE_ON_TARGET
    return threads.choose(cores, cores=cores, quota=profile.cpu_quota, numa_nodes=profile.cpu.numa_nodes)
