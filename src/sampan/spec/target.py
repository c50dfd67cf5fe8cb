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
    """The release of the target's glibc (``2.28``), and the highest symbol versions of its other libraries."""

    glibc: str | None = None
    glibcxx: str | None = None
    cxxabi: str | None = None
    gomp: str | None = None  # of libgomp.so.1: GOMP_4.5 gives 4.5


@dataclass(frozen=True)
class ProbeFacts:
    """What became of one instruction of each feature that was executed on the machine; sorted names.

    ``illegal`` died of SIGILL, ``hung`` had to be ended, of ``unclear`` nothing was learnt. ``false_claims`` are
    those of the first two that the kernel reports, ``unclaimed`` ran although the kernel does not report them.
    """

    ran: tuple[str, ...]
    illegal: tuple[str, ...] = ()
    hung: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    false_claims: tuple[str, ...] = ()
    unclaimed: tuple[str, ...] = ()


@dataclass(frozen=True)
class CpuFacts:
    """One CPU, in the kernel's words.

    ``features`` are the names that /proc/cpuinfo prints (``asimddp``, ``avx2``…), sorted, without the false claims
    that a probe has found: whatever is planned, it must not use those. ``features_known`` is False where they are
    only the architecture's floor and the machine may have more (a generic profile).
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
    variant: str | None = None  # arm64 MIDR, hexadecimal text
    revision: str | None = None  # arm64 MIDR, decimal text
    family: str | None = None  # x86: "cpu family"
    model_number: str | None = None  # x86: "model"
    stepping: str | None = None  # x86
    allowed: str | None = None  # the CPUs that this process may use, as the kernel lists them: 0-3,8
    probe: ProbeFacts | None = None  # None: no instruction was tried


@dataclass(frozen=True)
class GpuFacts:
    """One GPU; ``compute_capability`` such as ``6.1``, ``driver`` as nvidia-smi prints it."""

    name: str
    compute_capability: str | None = None
    driver: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class NpuFacts:
    """Ascend NPUs: their ``name`` as npu-smi prints it, the driver's version, how many device nodes there are."""

    count: int
    name: str | None = None
    driver: str | None = None


@dataclass(frozen=True)
class DeviceFacts:
    """One device node of an accelerator. ``usable``: this user may read and write it."""

    path: str
    mode: str  # as ls prints it: crw-rw----
    owner: str
    group: str
    usable: bool


@dataclass(frozen=True)
class LimitsFacts:
    """Soft limits of this process (setrlimit(2)): bytes for ``memlock``, else counts; -1 means: no limit."""

    memlock: int | None = None
    nofile: int | None = None
    nproc: int | None = None


@dataclass(frozen=True)
class DiskFacts:
    """The filesystem below one folder. ``free_bytes`` is what an ordinary user may still write."""

    path: str
    mount: str
    filesystem: str
    noexec: bool = False
    nosuid: bool = False
    read_only: bool = False
    size_bytes: int | None = None
    free_bytes: int | None = None


@dataclass(frozen=True)
class SecurityFacts:
    """What may refuse a program to start; None where it cannot be seen.

    ``selinux``: enforcing, permissive, absent. ``apparmor``: enabled, disabled, absent. ``kysec``: the state of
    Kylin's execution control as ``getstatus`` prints it (on, off, warning…), present, absent. ``fapolicyd``:
    running, installed, absent.
    """

    selinux: str | None = None
    apparmor: str | None = None
    kysec: str | None = None
    fapolicyd: str | None = None


@dataclass(frozen=True)
class UserFacts:
    """Who surveyed. ``groups``: of the user's groups those that give rights which an installation needs."""

    name: str
    uid: int
    groups: tuple[str, ...] = ()
    sudo: bool | None = None  # whether the command is there; nothing is run to find out what it would grant


@dataclass(frozen=True)
class Moment:
    """What is another a minute later. Not part of a bundle, which must be the same whenever it is made."""

    utc: str  # 2026-11-30T08:00:00Z, by the machine's own clock
    memory_available_bytes: int | None = None
    listening_ports: tuple[int, ...] | None = None  # TCP, ascending


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
    libraries: tuple[str, ...] | None = None  # SONAMEs that are there, beside others; None: nobody looked
    absent_libraries: tuple[str, ...] = ()  # looked for where the loader looks, and not there
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None  # cgroup limit in force, if any
    cpu_quota: float | None = None  # CPUs' worth of time granted by the cgroup, if limited
    systemd: int | None = None
    cgroup: int | None = None  # 1 or 2
    python: str | None = None
    openssh: str | None = None
    openssl: str | None = None
    gpus: tuple[GpuFacts, ...] = ()
    npus: NpuFacts | None = None
    devices: tuple[DeviceFacts, ...] = ()
    kernel_arch: str | None = None  # what `uname -m` says; a 64-bit kernel may carry a 32-bit userland
    swap_bytes: int | None = None
    limits: LimitsFacts = LimitsFacts()
    disks: tuple[DiskFacts, ...] = ()
    security: SecurityFacts = SecurityFacts()
    tar: str | None = None  # GNU tar 1.34, busybox 1.35.0
    init: str | None = None  # the name of process 1
    user: UserFacts | None = None
    proxies: tuple[str, ...] | None = None  # names of the variables that are set, never their values
    locale: str | None = None
    moment: Moment | None = None
    sources: tuple[Source, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)  # unknown fields of a newer schema, kept
