"""The memory table of one service: the engine, the gateway, a prompt cache and a margin. Pure; bytes."""

from __future__ import annotations

from collections.abc import Iterable

from sampan.plan import engine_memory
from sampan.plan.data import table
from sampan.spec.plan import EngineSettings, MemoryRow, Variant
from sampan.spec.weights import WeightsInfo

MIB = 1024 * 1024


def rows(weights: WeightsInfo, settings: EngineSettings, variants: Iterable[Variant]) -> tuple[MemoryRow, ...]:
    """What the service needs at its peak; the sum of all rows is the total."""
    fixed = table("plan.toml")["memory"]["fixed"]
    cache = MemoryRow("memory.prompt-cache", settings.cache_ram_mib * MIB, f"--cache-ram {settings.cache_ram_mib}")
    parts = (
        *engine_memory.rows(weights, settings, tuple(variants)),
        *((cache,) if cache.bytes else ()),
        MemoryRow("memory.gateway", fixed["gateway"], ""),
    )
    percent, least = fixed["margin_percent"], fixed["margin_least"]
    margin = max(total(parts) * percent // 100, least)
    return (*parts, MemoryRow("memory.margin", margin, f"{percent} %, ≥ {least // MIB} MiB"))


def total(table_rows: Iterable[MemoryRow]) -> int:
    """The sum of a memory table."""
    return sum(row.bytes for row in table_rows)
