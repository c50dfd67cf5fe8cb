"""The survey of the machine that we run on, from files alone: no process, no network, no root needed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from sampan.errors import IncompatibleError
from sampan.spec.target import CpuFacts, Source, TargetProfile
from sampan.survey import (
    accelerators,
    cgroups,
    cpuinfo,
    elf,
    features,
    guards,
    libc,
    resources,
    script,
    system,
    topology,
)
from sampan.survey.files import read_bytes, read_text


def survey_this(root: Path = Path("/")) -> TargetProfile:
    """Read /proc, /sys, os-release and the system's libraries below ``root``. What cannot be read stays None.

    Raises IncompatibleError ``survey.userland`` where the userland is not 64-bit little-endian Linux as we know it.
    """
    found = elf.userland(root)
    if found is None or found.machine is None:
        raise IncompatibleError("survey.userland", root=str(root))
    limits = cgroups.read(root)
    libraries, absent = libc.present(root, found.machine, script.libraries())
    return TargetProfile(
        name="this",
        arch=found.machine,
        os=system.os_facts(_os_release(root), read_text(root / "proc/sys/kernel/osrelease")),
        cpu=_cpu(root, found.machine),
        page_size=_page_size(root, found.bits),
        libc=libc.facts(root, found.machine),
        libraries=libraries,
        absent_libraries=absent,
        memory_bytes=system.memory_bytes(read_text(root / "proc/meminfo")),
        memory_limit_bytes=limits.memory_bytes,
        cpu_quota=limits.cpu_quota,
        systemd=system.systemd_version(root),
        cgroup=limits.cgroup,
        python=system.python_version(root),
        gpus=system.gpus(root),
        npus=accelerators.npus(root),
        devices=accelerators.devices(root),
        swap_bytes=resources.kilobytes(read_text(root / "proc/meminfo"), "SwapTotal"),
        disks=resources.disks(root),
        security=guards.facts(root),
        init=read_text(root / "proc/1/comm").strip() or None,
        sources=(
            Source(fact="*", check="S", where="/proc, /sys, /etc/os-release and the libraries of this machine"),
        ),
    )


def _os_release(root: Path) -> str:
    return read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release")


def _cpu(root: Path, arch: str) -> CpuFacts:
    text = read_text(root / "proc/cpuinfo")
    counts = topology.read(root)
    real = features.current(root)
    told = cpuinfo.parse(text, arch)  # of another machine where we are emulated: then nothing of it counts
    return replace(
        told,
        features=tuple(sorted(real)),
        features_known=bool(real),
        sockets=counts.sockets,
        cores=counts.cores or (cpuinfo.processors(text) if told.features_known else None),
        numa_nodes=counts.numa_nodes,
        allowed=system.allowed_cpus(read_text(root / "proc/self/status")),
    )


def _page_size(root: Path, bits: int) -> int:
    """What the kernel told this process; the auxiliary vector of a 32-bit process has another form."""
    told = features.auxv(read_bytes(root / "proc/self/auxv")) if bits == 64 else {}
    return told.get(features.AT_PAGESZ) or os.sysconf("SC_PAGE_SIZE")
