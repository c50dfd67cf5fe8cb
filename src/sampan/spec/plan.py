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
    repacks: tuple[str, ...] = ()  # weight types that this build keeps in an order of its own, beside the file's


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
    load_mode: str = "mmap"  # mmap: mapped; none: read; mlock, mmap+mlock: the same, and kept in RAM
    kv_type: str = "f16"  # of K and V
    numa: str | None = None  # isolate: all threads on the NUMA node where the engine started
    longest: int = 0  # the longest input that is accepted, its start and end included; 0: whatever fits
    slot_tokens: int = 0  # what one slot may hold, input and answer; 0: whatever fits


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
    notes: tuple[Reason, ...] = ()  # rules of experience that touch this plan
    cpu_quota_percent: int | None = None  # systemd's CPUQuota for the service; 100 is one CPU
    memory_limit_bytes: int | None = None  # systemd's MemoryMax for the service

    @property
    def engine_bytes_at_most(self) -> int:
        """An engine an eighth (at least 128 MiB) over its plan leaks; the unit's own limit is a quarter over it."""
        return self.memory_total_bytes + max(self.memory_total_bytes // 8, 128 << 20)
