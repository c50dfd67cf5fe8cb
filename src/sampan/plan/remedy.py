"""What would make a model fit that does not: other settings, a smaller type, and how small its weights must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sampan import i18n
from sampan.plan import engine_memory, memory
from sampan.plan.data import table
from sampan.plan.options import PlanOptions
from sampan.plan.settings import Machine, candidates, most_tokens
from sampan.plan.sizes import human
from sampan.spec.plan import Variant
from sampan.spec.weights import TensorBytes, WeightsInfo

_LENGTHS = (8192, 4096, 2048, 1024, 512, 256)
_MOST_ROWS = 6


@dataclass(frozen=True)
class Way:
    """One way to make it fit: ``flags`` to give, a type of weights where another is needed, bytes in all."""

    flags: str
    quantization: str | None
    bytes: int


def remedy(weights: WeightsInfo, available: int, variants: tuple[Variant, ...]) -> str:
    """For the hint of ``plan.memory``, in the language in force: a table of ways; ``available`` in bytes."""
    found = ways(weights, available, variants)
    if found:
        lines = (f"  {_type(way)}{way.flags}  ({human(way.bytes)})" for way in found[:_MOST_ROWS])
        return "\n".join((i18n.text("plan.remedy.ways"), *lines))
    smallest = _least(weights, min(_LENGTHS[-1], most_tokens(weights)), "f16", variants)
    room = available - (smallest - weights.size_bytes)
    if room <= 0:
        return i18n.text("plan.remedy.none", needed=human(smallest))
    return i18n.text(
        "plan.remedy.weights", quantization=weights.quantization, now=human(weights.size_bytes), room=human(room)
    )


def ways(weights: WeightsInfo, available: int, variants: tuple[Variant, ...]) -> list[Way]:
    """What fits: the longest text for these weights first, then smaller types of weights."""
    here = list(_with(weights, None, available, variants))
    smaller = [way for kind in table("plan.toml")["smaller"] for way in _smaller(weights, kind, available, variants)]
    return here + smaller


def _type(way: Way) -> str:
    return f"--quant {way.quantization} " if way.quantization else ""


def _with(weights: WeightsInfo, kind: str | None, available: int, variants: tuple[Variant, ...]) -> Iterator[Way]:
    """The longest text that fits, for each type of KV cache."""
    kinds = ("f16",) if engine_memory.is_encoder(weights) else ("f16", "q8_0")
    best = 0
    for kv_type in kinds:
        for tokens in dict.fromkeys(min(length, most_tokens(weights)) for length in _LENGTHS):
            needed = _least(weights, tokens, kv_type, variants)
            if needed <= available:
                if tokens > best:
                    cache = "" if kv_type == "f16" else f" --kv-type {kv_type}"
                    yield Way(f"--max-tokens {tokens} --concurrency 1{cache}", kind, needed)
                best = max(best, tokens)
                break


def _smaller(
    weights: WeightsInfo, kind: dict[str, object], available: int, variants: tuple[Variant, ...]
) -> list[Way]:
    """The same model with weights of another type: only where that is smaller."""
    name, each = str(kind["name"]), float(str(kind["bytes"]))
    size = int(weights.parameters * each)
    if size >= weights.size_bytes:
        return []
    tensors = (TensorBytes("matrix", str(kind["matrices"]), size),)
    return list(
        _with(replace(weights, size_bytes=size, quantization=name, tensors=tensors), name, available, variants)
    )


def _least(weights: WeightsInfo, tokens: int, kv_type: str, variants: tuple[Variant, ...]) -> int:
    """Bytes with one slot and this length, in the leanest form."""
    options = PlanOptions(max_tokens=tokens, concurrency=1, kv_type=kv_type)
    machine = Machine(1, memory_known=True, reorders=engine_memory.may_reorder(weights, variants))
    forms = candidates(weights, options, machine)
    return min(memory.total(memory.rows(weights, settings, variants)) for settings in forms)
