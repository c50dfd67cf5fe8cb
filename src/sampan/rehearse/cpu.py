"""Which CPU plays the target's: the decision, from profile and table alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from sampan.spec.target import TargetProfile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NATIVE = "native"


def _escaped(digits: str) -> str:
    """Bytes as binfmt_misc wants them written."""
    return "".join(f"\\x{digits[index : index + 2]}" for index in range(0, len(digits), 2))


#: any OS ABI; e_type ET_EXEC or ET_DYN; everything else as in the magic
BINFMT_MASK = _escaped("ff" * 7 + "00" + "ff" * 8 + "feff" + "ffff")


@dataclass(frozen=True)
class EmulatedCpu:
    """One CPU that qemu-user plays. ``qemu`` is the value of QEMU_CPU, ``midr`` implementer and part on arm64."""

    name: str
    arch: str
    level: str
    floor: bool
    qemu: str
    hwcap: int
    features: frozenset[str]
    midr: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """``data/emulated_cpus.toml``, typed. ``machine`` is ELF's e_machine as hexadecimal text in file order."""

    cpus: tuple[EmulatedCpu, ...]
    decisive: dict[str, frozenset[str]]
    beside: dict[str, frozenset[str]]
    program: dict[str, str]
    machine: dict[str, str]


@dataclass(frozen=True)
class StandIn:
    """What the bundle will meet instead of the target's CPU.

    ``lacks``: features of the target that the stand-in does not have, so they stay unproved. ``adds``: features that
    only the stand-in has. ``exceeds``: those of ``adds`` that a program could depend upon, so a fault may stay
    hidden; empty for every stand-in that was free to choose. ``shown`` are the features that /proc/cpuinfo shows,
    ``hwcap`` is AT_HWCAP as a program must see it (0: any).
    """

    name: str
    level: str
    emulated: bool
    qemu: str
    shown: frozenset[str]
    hwcap: int = 0
    lacks: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    exceeds: tuple[str, ...] = ()
    midr: tuple[str, ...] = ()


@cache
def table() -> Table:
    """The table of CPUs as shipped."""
    data = tomllib.loads((resources.files("sampan") / "data" / "emulated_cpus.toml").read_text(encoding="utf-8"))
    cpus = tuple(
        EmulatedCpu(**{**item, "features": frozenset(item["features"]), "midr": tuple(item["midr"])})
        for item in data["cpu"]
    )
    return Table(
        cpus=cpus,
        decisive={arch: frozenset(names) for arch, names in data["decisive"].items()},
        beside={arch: frozenset(names) for arch, names in data["beside"].items()},
        program={arch: item["program"] for arch, item in data["qemu"].items()},
        machine={arch: item["machine"] for arch, item in data["qemu"].items()},
    )


def binfmt_magic(arch: str) -> str:
    """The first 20 bytes of a 64-bit little-endian ELF program of ``arch``, escaped for binfmt_misc."""
    return _escaped("7f454c46020101" + "00" * 9 + "0200" + table().machine[arch])


def emulated(profile: TargetProfile) -> StandIn | None:
    """The emulated CPU with the most of the target's features that has no decisive one beyond them.

    A profile whose features are only a floor gets the architecture's floor. None where qemu's table has no CPU of
    the architecture.
    """
    known = table()
    cpus = [cpu for cpu in known.cpus if cpu.arch == profile.arch]
    if not cpus:
        return None
    floor = next(cpu for cpu in cpus if cpu.floor)
    target = frozenset(profile.cpu.features)
    fit = [cpu for cpu in cpus if cpu.features & known.decisive[cpu.arch] <= target]
    best = max(fit, key=lambda cpu: len(cpu.features & target), default=floor)
    cpu = best if profile.cpu.features_known else floor
    stand_in = StandIn(cpu.name, cpu.level, True, cpu.qemu, cpu.features, cpu.hwcap, midr=cpu.midr)
    return _compared(stand_in, profile, cpu.features)


def native(profile: TargetProfile, machine: frozenset[str]) -> StandIn:
    """This machine's own CPU, shown to the bundle with no decisive feature that the target lacks.

    What is hidden in /proc/cpuinfo still runs when executed: ``exceeds`` names it.
    """
    hidden = _decisive(profile.arch) & machine - frozenset(profile.cpu.features)
    return _compared(StandIn(NATIVE, "", False, "", machine - hidden), profile, machine)


def exceeds(profile: TargetProfile, machine: frozenset[str]) -> bool:
    """True where this machine's CPU would run what the target's cannot."""
    return bool(_decisive(profile.arch) & machine - frozenset(profile.cpu.features))


def _decisive(arch: str) -> frozenset[str]:
    return table().decisive.get(arch, frozenset())


def _compared(cpu: StandIn, profile: TargetProfile, real: frozenset[str]) -> StandIn:
    known, arch = table(), profile.arch
    watched = _decisive(arch).union(*(item.features for item in known.cpus if item.arch == arch))
    watched -= known.beside.get(arch, frozenset())
    target = frozenset(profile.cpu.features)
    adds = (real - target) & watched
    return replace(
        cpu,
        lacks=tuple(sorted((target - real) & watched)),
        adds=tuple(sorted(adds)),
        exceeds=tuple(sorted(adds & _decisive(arch))),
    )
