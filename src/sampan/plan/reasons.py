"""Why the plan is as it is: catalogue keys with their values, so that both languages can say it."""

from __future__ import annotations

from sampan.plan.options import PlanOptions
from sampan.plan.threads import DECIDE_ON_TARGET
from sampan.spec.plan import EngineSettings, Reason, Variant
from sampan.spec.target import TargetProfile
from sampan.spec.weights import WeightsInfo


def reasons(
    weights: WeightsInfo,
    profile: TargetProfile,
    options: PlanOptions,
    *,
    settings: EngineSettings,
    variants: tuple[Variant, ...],
    available: int | None,
) -> tuple[Reason, ...]:
    """One reason per decision, in the order of the summary's rows."""
    return (
        _variants(profile, variants),
        reason("plan.why.quantization", quantization=weights.quantization),
        _context(weights, settings),
        _slots(options, settings),
        _threads(profile, options, settings),
        reason("plan.why.page-size", kib=profile.page_size // 1024),
        _cache(settings),
        _loading(weights, settings, variants),
        _memory(options, available),
    )


def reason(key: str, /, **values: object) -> Reason:
    """A Reason with its values as text, in the order given."""
    return Reason(key, tuple((name, str(value)) for name, value in values.items()))


def _variants(profile: TargetProfile, variants: tuple[Variant, ...]) -> Reason:
    key = "plan.why.variants.known" if profile.cpu.features_known else "plan.why.variants.unknown"
    return reason(key, cpu=profile.cpu.model, best=variants[-1].name)


def _context(weights: WeightsInfo, settings: EngineSettings) -> Reason:
    if settings.embedding:
        key = "plan.why.context.whole" if settings.ubatch >= settings.longest else "plan.why.context.split"
        return reason(key, longest=settings.longest, trained=weights.context_length)
    return reason(
        "plan.why.context.chat", each=settings.slot_tokens, longest=settings.longest, trained=weights.context_length
    )


def _loading(weights: WeightsInfo, settings: EngineSettings, variants: tuple[Variant, ...]) -> Reason:
    if "mlock" in settings.load_mode:
        return reason("plan.why.load.locked")
    if settings.load_mode == "none":
        types = sorted({kind for variant in variants for kind in variant.repacks})
        held = [each.type for each in weights.tensors if each.type in types] or [weights.quantization]
        return reason("plan.why.load.read", types=", ".join(sorted(set(held))))
    return reason("plan.why.load.mapped")


def _slots(options: PlanOptions, settings: EngineSettings) -> Reason:
    if options.concurrency is not None:
        return reason("plan.why.slots.asked")
    return reason("plan.why.slots.embedding" if settings.embedding else "plan.why.slots.chat")


def _threads(profile: TargetProfile, options: PlanOptions, settings: EngineSettings) -> Reason:
    if settings.threads == DECIDE_ON_TARGET:
        return reason("plan.why.threads.target")
    if options.cores is not None:
        return reason("plan.why.threads.asked", cores=options.cores)
    quota = "-" if profile.cpu_quota is None else f"{profile.cpu_quota:g}"
    return reason(
        "plan.why.threads.known",
        cores=profile.cpu.cores,
        allowed=profile.cpu.allowed or "-",
        numa=profile.cpu.numa_nodes or 1,
        quota=quota,
    )


def _cache(settings: EngineSettings) -> Reason:
    return reason("plan.why.cache.embedding" if settings.embedding else "plan.why.cache.chat")


def _memory(options: PlanOptions, available: int | None) -> Reason:
    if available is None:
        return reason("plan.why.memory.unknown")
    return reason("plan.why.memory.asked" if options.memory_bytes is not None else "plan.why.memory.known")
