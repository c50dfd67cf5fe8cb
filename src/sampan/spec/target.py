"""TargetProfile: what the survey says of one machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class OsFacts:
    """What /etc/os-release and uname say. ``kernel`` is the release string, None where unknown."""

    id: str
    name: str
    version: str = ""
    kernel: str | None = None


@dataclass(frozen=True)
class LibcFacts:
    """The highest symbol versions that the target's own libraries export, such as ``2.28`` and ``3.4.24``."""

    glibc: str | None = None
    glibcxx: str | None = None
    cxxabi: str | None = None


@dataclass(frozen=True)
class CpuFacts:
    """One CPU, in the kernel's words.

    ``features`` are the names that /proc/cpuinfo prints (``asimddp``, ``avx2``…), sorted. ``features_known`` is
    False where they are only the architecture's floor and the machine may have more (a generic profile).
    ``implementer`` and ``part`` are the arm64 MIDR fields as hexadecimal text (``0x48``, ``0xd01``).
    """

    model: str
    features: tuple[str, ...] = ()
    features_known: bool = True
    vendor: str | None = None
    implementer: str | None = None
    part: str | None = None
    sockets: int | None = None
    cores: int | None = None
    numa_nodes: int | None = None


@dataclass(frozen=True)
class GpuFacts:
    """One GPU; ``compute_capability`` such as ``6.1``, ``driver`` as nvidia-smi prints it."""

    name: str
    compute_capability: str | None = None
    driver: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Source:
    """Where a fact comes from. ``check``: ``V`` verified, ``R`` from memory, ``S`` surveyed on the machine."""

    fact: str
    check: str
    where: str


@dataclass(frozen=True)
class TargetProfile:
    """Everything that the later stages may know of the target. None means unknown, never a guess."""

    SCHEMA: ClassVar[str] = "sampan/target-profile/1"

    name: str
    arch: str  # the userland's, as `uname -m` names it: aarch64, x86_64, loongarch64, riscv64
    os: OsFacts
    cpu: CpuFacts
    page_size: int  # bytes
    libc: LibcFacts = LibcFacts()
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None  # cgroup limit in force, if any
    cpu_quota: float | None = None  # CPUs' worth of time granted by the cgroup, if limited
    systemd: int | None = None
    cgroup: int | None = None  # 1 or 2
    python: str | None = None
    openssh: str | None = None
    openssl: str | None = None
    gpus: tuple[GpuFacts, ...] = ()
    sources: tuple[Source, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)  # unknown fields of a newer schema, kept
