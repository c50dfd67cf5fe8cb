"""Fits a model to a target. Pure: the same weights, profile and options give the same Plan."""

from __future__ import annotations

from sampan.errors import IncompatibleError
from sampan.plan import engine_memory, memory, names, threads
from sampan.plan.options import PlanOptions
from sampan.plan.reasons import reasons
from sampan.plan.remedy import remedy
from sampan.plan.rules import notes
from sampan.plan.settings import Machine, candidates
from sampan.plan.sizes import human
from sampan.plan.variants import runnable
from sampan.spec.plan import EngineSettings, MemoryRow, Plan, Variant
from sampan.spec.target import TargetProfile
from sampan.spec.weights import WeightsInfo

ENGINE = "llama.cpp"
_MIB = 1 << 20


def make_plan(weights: WeightsInfo, profile: TargetProfile, options: PlanOptions | None = None) -> Plan:
    """What will run on the target, and why.

    Raises UsageError (``plan.name``, ``plan.max-tokens``) and IncompatibleError (``variant.arch``,
    ``variant.none``, ``plan.memory`` with what would make it fit).
    """
    options = options or PlanOptions()
    name = names.check(options.name) if options.name is not None else names.default(weights.name, profile.name)
    variants = runnable(profile.arch, profile.cpu.features, features_known=profile.cpu.features_known)
    available = available_memory(profile, options)
    settings, rows = _fit(weights, profile, options, available, variants)
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
        notes=notes(weights, profile, settings),
        cpu_quota_percent=None if options.cores is None else 100 * options.cores,
        memory_limit_bytes=_memory_limit(memory.total(rows), options),
    )


def _memory_limit(total: int, options: PlanOptions) -> int:
    """A quarter, at least 256 MiB, in reserve, so that only a leak meets the limit; never more than was granted."""
    limit = total + max(total // 4, 256 * _MIB)
    limit = -(-limit // _MIB) * _MIB
    return limit if options.memory_bytes is None else min(limit, max(total, options.memory_bytes))


def available_memory(profile: TargetProfile, options: PlanOptions) -> int | None:
    """Bytes that the service may use: as the user says, else the machine's memory or cgroup limit; None: unknown."""
    if options.memory_bytes is not None:
        return options.memory_bytes
    known = [size for size in (profile.memory_bytes, profile.memory_limit_bytes) if size is not None]
    return min(known) if known else None


def _fit(
    weights: WeightsInfo,
    profile: TargetProfile,
    options: PlanOptions,
    available: int | None,
    variants: tuple[Variant, ...],
) -> tuple[EngineSettings, tuple[MemoryRow, ...]]:
    """The most generous candidate that fits; without a known size, the first."""
    machine = Machine(
        threads=_threads(profile, options),
        memory_known=available is not None,
        reorders=engine_memory.may_reorder(weights, variants),
        numa=(profile.cpu.numa_nodes or 1) > 1,
    )
    tried = []
    for settings in candidates(weights, options, machine):
        rows = memory.rows(weights, settings, variants)
        if available is None or memory.total(rows) <= available:
            return settings, rows
        tried.append(memory.total(rows))
    raise IncompatibleError(
        "plan.memory",
        model=weights.name,
        target=profile.name,
        needed=human(min(tried)),
        available=human(available or 0),
        remedy=remedy(weights, available or 0, variants),
    )


def _threads(profile: TargetProfile, options: PlanOptions) -> int:
    if options.cores is not None:
        return threads.choose(options.cores, quota=profile.cpu_quota)
    cores = profile.cpu.cores
    if cores is None:
        return threads.DECIDE_ON_TARGET
    affinity = threads.count(profile.cpu.allowed) or cores
    found = threads.choose(affinity, cores=cores, quota=profile.cpu_quota, numa_nodes=profile.cpu.numa_nodes)
    return threads.leave_one(found)
