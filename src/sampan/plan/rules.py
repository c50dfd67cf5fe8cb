"""Rules of users' experience that touch a plan: said beside it, with their numbers. Sources are in the data."""

from __future__ import annotations

from collections.abc import Iterator

from sampan.plan import engine_memory
from sampan.plan.data import table
from sampan.plan.reasons import reason
from sampan.plan.sizes import human
from sampan.spec.plan import EngineSettings, Reason
from sampan.spec.target import GpuFacts, TargetProfile
from sampan.spec.weights import WeightsInfo

_GIGA = 1e9


def notes(weights: WeightsInfo, profile: TargetProfile, settings: EngineSettings) -> tuple[Reason, ...]:
    """In the order of the data; keys ``plan.rule.<id>``."""
    locked = _memlock(weights, profile, settings)
    return (*_size(weights), *_shared(settings), *_four_bits(weights), *locked, *_gpus(profile))


def _rule(name: str) -> dict[str, float]:
    found: dict[str, float] = table("plan.toml")["rule"][name]
    return found


def _size(weights: WeightsInfo) -> Iterator[Reason]:
    if weights.parameters >= _rule("size")["from"]:
        giga = weights.parameters / _GIGA
        values = {"parameters": f"{giga:.1f}", "half": f"{2 * giga:.1f}", "int8": f"{giga:.1f}"}
        yield reason(
            "plan.rule.size",
            **values,
            int4=f"{giga / 2:.1f}",
            running=f"{3 * giga:.1f}",
            here=f"{weights.size_bytes / _GIGA:.1f}",
        )


def _shared(settings: EngineSettings) -> Iterator[Reason]:
    if not settings.unified_kv and settings.slots > 1:
        each = engine_memory.sequence_context(settings)
        yield reason("plan.rule.shared", context=settings.context, slots=settings.slots, each=each)


def _four_bits(weights: WeightsInfo) -> Iterator[Reason]:
    is_coarse = weights.quantization.startswith(("Q2", "Q3", "Q4", "IQ"))
    if weights.task != "chat" and is_coarse:
        yield reason("plan.rule.fourbit", quantization=weights.quantization)


def _memlock(weights: WeightsInfo, profile: TargetProfile, settings: EngineSettings) -> Iterator[Reason]:
    allowed, needed = profile.limits.memlock, engine_memory.tensor_bytes(weights)
    if "mlock" in settings.load_mode and allowed is not None and 0 <= allowed < needed:
        yield reason("plan.rule.memlock", allowed=human(allowed), needed=human(needed))


def _gpus(profile: TargetProfile) -> Iterator[Reason]:
    for gpu in dict.fromkeys(profile.gpus):
        yield reason("plan.rule.gpu-unused", gpu=gpu.name)
        capability = _capability(gpu)
        for name in ("sm60", "sm75"):
            if capability is not None and capability < _rule(name)["below"]:
                yield reason(f"plan.rule.{name}", gpu=gpu.name, capability=gpu.compute_capability)
                break


def _capability(gpu: GpuFacts) -> float | None:
    try:
        return float(gpu.compute_capability or "")
    except ValueError:
        return None
