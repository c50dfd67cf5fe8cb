"""The audit's knowledge, read from ``data/audit.toml``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_VERSION = re.compile(r"([A-Za-z_]+?)_?(\d+(?:\.\d+)*)")


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


@dataclass(frozen=True)
class Family:
    """Versions with one prefix: the finding's code, and the field of LibcFacts that is the target's ceiling."""

    code: str
    fact: str


@dataclass(frozen=True)
class GccRelease:
    """The highest versions of GCC's libraries, by fact: for a libstdc++ from ``glibcxx`` up to the next release's."""

    release: str
    glibcxx: tuple[int, ...]
    ceilings: Mapping[str, str]


@dataclass(frozen=True)
class PageSensitive:
    """A text that gives away a page size compiled in; ``readable``: the machine code that uses it tells which."""

    name: str
    text: str
    readable: bool


@dataclass(frozen=True)
class StaticTls:
    """From glibc ``since`` on, ``reserve`` bytes of static TLS remain for libraries that are opened late."""

    since: tuple[int, ...]
    reserve: int


@dataclass(frozen=True)
class Rules:
    """All of the data file, typed."""

    arch: Mapping[str, ArchRules]
    family: Mapping[str, Family]
    special: Mapping[str, str]
    gcc: tuple[GccRelease, ...]
    glibc_libraries: frozenset[str]
    gcc_libraries: frozenset[str]
    driver_libraries: frozenset[str]
    page_sensitive: tuple[PageSensitive, ...]
    build_paths: tuple[str, ...]
    plugins: tuple[str, ...]
    static_tls: StaticTls
    stack_refused_since: tuple[int, ...]
    runtime: str
    runtime_programs: tuple[str, ...]
    private_abi: str


@cache
def load() -> Rules:
    """The rules that travel with this version."""
    text = (resources.files("sampan") / "data" / "audit.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    tls = data["static_tls"]
    return Rules(
        arch={name: _arch(name, data) for name in data["arch"]},
        family={name: Family(one["code"], one["fact"]) for name, one in data["family"].items()},
        special=data["special"],
        gcc=tuple(GccRelease(one["release"], number(one["glibcxx"]), one) for one in data["gcc"]["releases"]),
        glibc_libraries=frozenset(data["target"]["glibc"]),
        gcc_libraries=frozenset(data["target"]["gcc"]),
        driver_libraries=frozenset(data["target"]["driver"]),
        page_sensitive=tuple(
            PageSensitive(one["name"], one["text"], one["readable"]) for one in data["page_sensitive"]
        ),
        build_paths=tuple(data["build_paths"]["prefixes"]),
        plugins=tuple(data["plugins"]["prefixes"]),
        static_tls=StaticTls(number(tls["since"]), tls["reserve"]),
        stack_refused_since=number(data["executable_stack"]["refused_since"]),
        runtime=data["bundle"]["runtime"],
        runtime_programs=tuple(data["bundle"]["programs"]),
        private_abi=data["bundle"]["private_abi"],
    )


def _arch(name: str, data: Mapping[str, Any]) -> ArchRules:
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


def split_version(version: str) -> tuple[str, tuple[int, ...]]:
    """``GLIBC_2.28`` -> ``("GLIBC", (2, 28))``; a version without a number has the number ``()``."""
    match = _VERSION.fullmatch(version)
    if not match:
        return version.partition("_")[0], ()
    return match[1], number(match[2])


def number(text: str) -> tuple[int, ...]:
    """``3.4.24`` -> ``(3, 4, 24)``; digits beyond any real version count as one large number."""
    return tuple(int(part[:9]) for part in text.split(".") if part.isdecimal())
