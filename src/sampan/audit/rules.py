"""The audit's knowledge, read from ``data/audit.toml``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_VERSION = re.compile(r"([A-Za-z_]+?)_?(\d+(?:\.\d+)*)")


@dataclass(frozen=True)
class ArchRules:
    """What an ELF file of one architecture looks like, and its loaders. ``lib``: on the target, in the runtime."""

    machine: str
    bits: int
    little_endian: bool
    loader: str
    musl: str
    lib: tuple[str, str]


@dataclass(frozen=True)
class Family:
    """Versions with one prefix: the finding's code, and the field of LibcFacts that is the target's ceiling."""

    code: str
    fact: str


@dataclass(frozen=True)
class Rules:
    """All of the data file, typed."""

    arch: Mapping[str, ArchRules]
    family: Mapping[str, Family]
    special: Mapping[str, str]
    glibc_libraries: frozenset[str]
    gcc_libraries: frozenset[str]
    runtime: str
    runtime_programs: tuple[str, ...]
    private_abi: str


@cache
def load() -> Rules:
    """The rules that travel with this version."""
    text = (resources.files("sampan") / "data" / "audit.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Rules(
        arch={
            name: ArchRules(
                machine=one["machine"],
                bits=one["bits"],
                little_endian=one["little_endian"],
                loader=one["loader"],
                musl=one["musl"],
                lib=(one["lib"][0], one["lib"][1]),
            )
            for name, one in data["arch"].items()
        },
        family={name: Family(one["code"], one["fact"]) for name, one in data["family"].items()},
        special=data["special"],
        glibc_libraries=frozenset(data["target"]["glibc"]),
        gcc_libraries=frozenset(data["target"]["gcc"]),
        runtime=data["bundle"]["runtime"],
        runtime_programs=tuple(data["bundle"]["programs"]),
        private_abi=data["bundle"]["private_abi"],
    )


def split_version(version: str) -> tuple[str, tuple[int, ...]]:
    """``GLIBC_2.28`` -> ``("GLIBC", (2, 28))``; a version without a number has the number ``()``."""
    match = _VERSION.fullmatch(version)
    if not match:
        return version.partition("_")[0], ()
    return match[1], number(match[2])


def number(text: str) -> tuple[int, ...]:
    """``3.4.24`` -> ``(3, 4, 24)``; digits beyond any real version count as one large number."""
    return tuple(int(part[:9]) for part in text.split(".") if part.isdecimal())
