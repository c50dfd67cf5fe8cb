"""The memory table of one service: each row a formula with its numbers. Sources are in ``data/plan.toml``."""

from __future__ import annotations

from typing import Any

from sampan.plan.data import table
from sampan.spec.plan import EngineSettings, MemoryRow
from sampan.spec.weights import WeightsInfo

MIB = 1024 * 1024


def rows(weights: WeightsInfo, settings: EngineSettings) -> tuple[MemoryRow, ...]:
    """What the service needs at its peak, bytes; the sum of all rows is the total."""
    facts = table("plan.toml")["memory"]
    parts = [
        _weights(weights),
        _kv(weights, settings, facts),
        _compute(weights, settings),
        _output(weights, settings),
        _vocabulary(weights, facts),
        _prompt_cache(settings),
        MemoryRow("memory.engine", facts["engine"], ""),
        MemoryRow("memory.gateway", facts["gateway"], ""),
    ]
    used = [row for row in parts if row.bytes]
    return (*used, _margin(sum(row.bytes for row in used), facts))


def total(table_rows: tuple[MemoryRow, ...]) -> int:
    """The sum of a memory table."""
    return sum(row.bytes for row in table_rows)


def is_encoder(weights: WeightsInfo) -> bool:
    """Whether the engine keeps no KV cache for it, so that its whole input must fit into one physical batch."""
    return weights.architecture in table("plan.toml")["engine"]["encoders"]


def _weights(weights: WeightsInfo) -> MemoryRow:
    return MemoryRow("memory.weights", weights.size_bytes, f"{weights.file_name}")


def _kv(weights: WeightsInfo, settings: EngineSettings, facts: dict[str, Any]) -> MemoryRow:
    """2 (K and V) x layers x KV heads x head dimension x context x bytes."""
    if is_encoder(weights):
        return MemoryRow("memory.kv", 0, "")
    head = weights.embedding_length // weights.heads
    size = 2 * weights.layers * weights.kv_heads * head * settings.context * facts["kv_bytes"]
    why = (
        f"2 × {weights.layers} L × {weights.kv_heads} Hkv × {head} D × {settings.context} ctx × {facts['kv_bytes']} B"
    )
    return MemoryRow("memory.kv", size, why)


def sequence_context(settings: EngineSettings) -> int:
    """The tokens that one sequence can see: all of the context where it is shared, else its part."""
    return settings.context if settings.unified_kv else settings.context // settings.slots


def _compute(weights: WeightsInfo, settings: EngineSettings) -> MemoryRow:
    plain = weights.architecture in table("plan.toml")["engine"]["plain_feed_forward"]
    width = 1 if plain else 3
    seen = sequence_context(settings)
    activations = 4 * settings.ubatch * (4 * weights.embedding_length + width * weights.feed_forward_length)
    why = (
        f"4 B × {settings.ubatch} ub × (4 × {weights.embedding_length} E + {width} × {weights.feed_forward_length} F)"
        f" + 2 B × {settings.ubatch} × {seen}"
    )
    return MemoryRow("memory.compute", activations + 2 * settings.ubatch * seen, why)


def _output(weights: WeightsInfo, settings: EngineSettings) -> MemoryRow:
    """Grows to this at the first full pass and stays; see the source in the data."""
    outputs = max(settings.slots, settings.ubatch) if settings.embedding else settings.slots
    width = weights.vocabulary + (weights.embedding_length if settings.embedding else 0)
    why = f"4 B × {outputs} × ({weights.vocabulary} V + {width - weights.vocabulary} E)"
    return MemoryRow("memory.output", 4 * outputs * width, why)


def _vocabulary(weights: WeightsInfo, facts: dict[str, Any]) -> MemoryRow:
    each = facts["vocabulary_entry"]
    return MemoryRow("memory.vocabulary", each * weights.vocabulary, f"{each} B × {weights.vocabulary} V")


def _prompt_cache(settings: EngineSettings) -> MemoryRow:
    why = f"--cache-ram {settings.cache_ram_mib}"
    return MemoryRow("memory.prompt-cache", settings.cache_ram_mib * MIB, why)


def _margin(used: int, facts: dict[str, Any]) -> MemoryRow:
    percent, least = facts["margin_percent"], facts["margin_least"]
    return MemoryRow("memory.margin", max(used * percent // 100, least), f"{percent} %, ≥ {least // MIB} MiB")
