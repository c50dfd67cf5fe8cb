"""llama-server's memory, by its own formulas. Their sources are in ``data/plan.toml``. Pure; bytes."""

from __future__ import annotations

from collections.abc import Iterable

from sampan.plan.data import table
from sampan.spec.plan import EngineSettings, MemoryRow, Variant
from sampan.spec.weights import WeightsInfo

_MAPPED = ("mmap", "mmap+mlock", "auto")


def rows(weights: WeightsInfo, settings: EngineSettings, variants: Iterable[Variant]) -> tuple[MemoryRow, ...]:
    """What the process holds after its longest request, without its prompt cache; empty parts are left out."""
    copied = max((repacked(weights, settings, variant.repacks) for variant in variants), default=0)
    parts = (
        MemoryRow("memory.weights", tensor_bytes(weights), f"{weights.file_name}, {settings.load_mode}"),
        MemoryRow("memory.repacked", copied, "+".join(_copied_types(weights, variants))),
        _kv(weights, settings),
        _compute(weights, settings),
        _work(weights, settings),
        _output(weights, settings),
        _vocabulary(weights, settings),
        _fixed(weights),
    )
    return tuple(row for row in parts if row.bytes)


def is_encoder(weights: WeightsInfo) -> bool:
    """Whether the engine keeps no KV cache for it, so that its whole input must fit into one physical batch."""
    return weights.architecture in table("plan.toml")["engine"]["encoders"]


def sequence_context(settings: EngineSettings) -> int:
    """The tokens that one sequence can see: all of the context where it is shared, else its part."""
    return settings.context if settings.unified_kv else settings.context // settings.slots


def tensor_bytes(weights: WeightsInfo) -> int:
    """The tensors alone: a file's vocabulary is read into tables, which are counted by the token."""
    return sum(each.bytes for each in weights.tensors) or weights.size_bytes


def repacked(weights: WeightsInfo, settings: EngineSettings, types: Iterable[str]) -> int:
    """What is in memory beside the file's own tensors."""
    reordered = frozenset(types)
    is_mapped = settings.load_mode in _MAPPED
    if not weights.tensors:  # an artefact of an older sampan: the whole file may be copied
        return weights.size_bytes if is_mapped and weights.quantization.removesuffix("_M") in reordered else 0
    extra = ("tied", "matrix") if is_mapped else ("tied",)
    return sum(each.bytes for each in weights.tensors if each.use in extra and each.type in reordered)


def may_reorder(weights: WeightsInfo, variants: Iterable[Variant]) -> bool:
    """Whether mapping the file would keep some of it twice."""
    types = {each.type for each in weights.tensors if each.use == "matrix"} or {weights.quantization}
    return any(types & frozenset(variant.repacks) for variant in variants)


def _copied_types(weights: WeightsInfo, variants: Iterable[Variant]) -> list[str]:
    known = {kind for variant in variants for kind in variant.repacks}
    return sorted({each.type for each in weights.tensors if each.type in known and each.use != "other"})


def _kv(weights: WeightsInfo, settings: EngineSettings) -> MemoryRow:
    if is_encoder(weights):
        return MemoryRow("memory.kv", 0, "")
    head = weights.head_length or weights.embedding_length // weights.heads
    each: float = table("plan.toml")["kv"][settings.kv_type]
    size = int(2 * weights.layers * weights.kv_heads * head * settings.context * each)
    why = f"2 × {weights.layers} L × {weights.kv_heads} Hkv × {head} D × {settings.context} ctx × {each:g} B"
    return MemoryRow("memory.kv", size, why)


def _compute(weights: WeightsInfo, settings: EngineSettings) -> MemoryRow:
    is_plain = weights.architecture in table("plan.toml")["engine"]["plain_feed_forward"]
    states, inner = (3, 1) if is_plain else (4, 3)
    seen, batch = sequence_context(settings), settings.ubatch
    floats = states * weights.embedding_length + inner * weights.feed_forward_length
    why = (
        f"4 B × {batch} ub × ({states} × {weights.embedding_length} E + {inner} × {weights.feed_forward_length} F)"
        f" + 2 B × {batch} × {seen}"
    )
    return MemoryRow("memory.compute", 4 * batch * floats + 2 * batch * seen, why)


def _work(weights: WeightsInfo, settings: EngineSettings) -> MemoryRow:
    kinds = table("plan.toml")["work"]
    sizes = {each.type: each.bytes for each in weights.tensors if each.use == "matrix"}
    types = [kind for kind in sizes if kind != "F32"] or [weights.quantization]
    each = max(kinds.get(kind, kinds["other"]) for kind in types)
    widest = max(weights.embedding_length, weights.feed_forward_length)
    size = int(settings.ubatch * widest * each)
    return MemoryRow("memory.work", size, f"{settings.ubatch} ub × {widest} F × {each:g} B")


def has_logits(settings: EngineSettings) -> bool:
    """Whether a pass makes a row of logits for each of its tokens."""
    pooled = settings.pooling in table("plan.toml")["engine"]["without_logits"]
    return settings.embedding and not pooled


def _output(weights: WeightsInfo, settings: EngineSettings) -> MemoryRow:
    outputs = max(settings.slots, settings.ubatch) if settings.embedding else settings.slots
    vocabulary = weights.vocabulary if has_logits(settings) or not settings.embedding else 0
    width = weights.embedding_length if settings.embedding else 0
    why = f"4 B × {outputs} × ({vocabulary} V + {width} E)"
    return MemoryRow("memory.output", 4 * outputs * (vocabulary + width), why)


def _vocabulary(weights: WeightsInfo, settings: EngineSettings) -> MemoryRow:
    sizes = table("plan.toml")["memory"]["token"]
    each = sizes.get(weights.tokenizer, sizes["other"]) + (0 if settings.embedding else 16 * settings.slots)
    return MemoryRow("memory.vocabulary", each * weights.vocabulary, f"{each} B × {weights.vocabulary} V")


def _fixed(weights: WeightsInfo) -> MemoryRow:
    fixed = table("plan.toml")["memory"]["fixed"]
    return MemoryRow("memory.engine", fixed["engine"] + weights.layers * fixed["layer"], f"{weights.layers} L")
