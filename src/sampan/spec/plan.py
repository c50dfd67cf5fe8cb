"""Plan: what will run on the target, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Variant:
    """One build of the engine for one CPU level.

    ``requires`` are kernel feature names (see CpuFacts.features); a CPU that lacks one of them must not run it.
    ``rank`` orders variants of one architecture: the highest runnable one is taken.
    """

    name: str
    arch: str
    rank: int
    requires: tuple[str, ...]
    zig_cpu: str  # what `zig cc -mcpu=` takes
    cmake: tuple[str, ...] = ()  # extra -D definitions


@dataclass(frozen=True)
class EngineSettings:
    """llama-server's settings, in tokens where not said otherwise. Turned into flags by install and gateway."""

    context: int
    batch: int
    ubatch: int
    slots: int
    unified_kv: bool
    threads: int
    embedding: bool
    pooling: str | None = None
    cache_ram_mib: int = 0
    load_mode: str = "mmap"


@dataclass(frozen=True)
class MemoryRow:
    """One line of the memory table. ``item`` is a catalogue key, ``why`` a short formula with its numbers."""

    item: str
    bytes: int
    why: str


@dataclass(frozen=True)
class Reason:
    """Why a setting has its value: a catalogue key and its values as text."""

    key: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Plan:
    """All that build, wheelhouse, bundle, rehearse and install need to know."""

    SCHEMA: ClassVar[str] = "sampan/plan/1"

    name: str
    release: int
    target: str
    arch: str
    page_size: int
    engine: str  # llama.cpp
    variants: tuple[Variant, ...]  # baseline first, best last
    task: str
    model: str  # the public model id that the API answers to
    quantization: str
    settings: EngineSettings
    memory: tuple[MemoryRow, ...]
    memory_total_bytes: int
    memory_available_bytes: int | None
    reasons: tuple[Reason, ...] = ()
    port: int = 8080
