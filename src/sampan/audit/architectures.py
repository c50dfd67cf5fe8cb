"""What an ELF file of each architecture looks like, and its loaders. From ``data/audit.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sampan.audit.numbers import number


@dataclass(frozen=True)
class Abi:
    """The part of an ELF header's flags that must be equal: ``flags & mask == value``. ``names``: for people."""

    mask: int
    value: int
    names: Mapping[int, str]


@dataclass(frozen=True)
class Hwcap:
    """A folder that the loader prefers on a CPU with ``features``; ``since`` and ``until`` are versions of glibc."""

    folder: str
    features: frozenset[str]
    since: tuple[int, ...]
    until: tuple[int, ...]


@dataclass(frozen=True)
class OldWorld:
    """An earlier, incompatible ABI of one architecture: its loader, and the first glibc of the new one."""

    loader: str
    below: tuple[int, ...]


@dataclass(frozen=True)
class ArchRules:
    """What an ELF file of one architecture looks like, and its loaders. ``lib``: on the target, in the runtime.

    ``triplets``: its names in the file names of Python's extension modules.
    """

    machine: str
    bits: int
    little_endian: bool
    loader: str
    musl: str
    lib: tuple[str, str]
    triplets: tuple[str, ...] = ()
    abi: Abi | None = None
    hwcaps: tuple[Hwcap, ...] = ()
    old_world: OldWorld | None = None


def read(name: str, data: Mapping[str, Any]) -> ArchRules:
    """One architecture of the data file."""
    one, old, abi = data["arch"][name], data["old_world"].get(name), data["arch"][name].get("abi")
    return ArchRules(
        machine=one["machine"],
        bits=one["bits"],
        little_endian=one["little_endian"],
        loader=one["loader"],
        musl=one["musl"],
        lib=(one["lib"][0], one["lib"][1]),
        triplets=tuple(one["triplets"]),
        abi=Abi(abi["mask"], abi["value"], {int(key): text for key, text in abi["names"].items()}) if abi else None,
        hwcaps=tuple(_hwcap(each) for each in data["hwcaps"].get(name, ())),
        old_world=OldWorld(old["loader"], number(old["below"])) if old else None,
    )


def _hwcap(one: Mapping[str, Any]) -> Hwcap:
    since, until = number(one.get("since", "0")), number(one.get("until", "999999999"))
    return Hwcap(one["folder"], frozenset(one["features"]), since, until)
