"""The facts that conditions may ask for, from a profile."""

from __future__ import annotations

from sampan.doctor.conditions import Fact
from sampan.spec.target import TargetProfile

_MIB = 1 << 20


def of_profile(profile: TargetProfile, where: str) -> dict[str, Fact]:
    """All that the profile knows; what it does not know is left out."""
    cpu, gpu = profile.cpu, profile.gpus[0] if profile.gpus else None
    told: dict[str, object | None] = {
        "arch": profile.arch,
        "page_size": profile.page_size,
        "features": " ".join(cpu.features) if cpu.features_known and cpu.features else None,
        "cpu": cpu.model,
        "vendor": cpu.vendor,
        "kernel": profile.os.kernel,
        "os": f"{profile.os.name} {profile.os.version}".strip(),
        "glibc": profile.libc.glibc,
        "glibcxx": profile.libc.glibcxx,
        "cxxabi": profile.libc.cxxabi,
        "memory_mib": _mib(profile.memory_bytes),
        "memory_limit_mib": _mib(profile.memory_limit_bytes),
        "cpu_quota": profile.cpu_quota,
        "systemd": profile.systemd,
        "cgroup": profile.cgroup,
        "python": profile.python,
        "gpu": gpu.name if gpu else None,
        "compute_capability": gpu.compute_capability if gpu else None,
        "driver": gpu.driver if gpu else None,
    }
    told.update(_security(profile))
    told.update(_places(profile))
    return {name: Fact(str(value), where) for name, value in told.items() if value is not None}


def _security(profile: TargetProfile) -> dict[str, object | None]:
    """What may refuse a program, and limits; in the words of conditions."""
    security, limits = profile.security, profile.limits
    running = {"running": "active", "installed": "absent"}
    return {
        "selinux": security.selinux,
        "kysec": None if security.kysec == "present" else security.kysec,
        "fapolicyd": running.get(security.fapolicyd or "", security.fapolicyd),
        "memlock": _limit(limits.memlock),
        "nofile": _limit(limits.nofile),
    }


def _limit(count: int | None) -> str | None:
    return None if count is None else "unlimited" if count < 0 else str(count)


def _places(profile: TargetProfile) -> dict[str, object | None]:
    """Whether /opt and /tmp allow execution, where the survey looked at them."""
    noexec = {disk.path: "yes" if disk.noexec else "no" for disk in profile.disks}
    return {"noexec_prefix": noexec.get("/opt"), "noexec_tmp": noexec.get("/tmp")}  # noqa: S108  (looked up)


def _mib(count: int | None) -> int | None:
    return None if count is None else count // _MIB
