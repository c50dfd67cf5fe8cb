"""Which libraries a target has itself: for sure, or probably. Read from ``data/target_libraries.toml``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sampan.audit.numbers import number
from sampan.audit.rules import Rules
from sampan.spec.target import TargetProfile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_GOMP = "libgomp.so.1"


@dataclass(frozen=True)
class Base:
    """Libraries of one family of systems. Empty fields hold for any; ``since`` and ``below`` are glibc's versions."""

    libraries: frozenset[str]
    os: frozenset[str]
    arch: str
    since: tuple[int, ...]
    below: tuple[int, ...]

    def fits(self, profile: TargetProfile) -> bool:
        """Whether a target of that profile has them."""
        glibc = number(profile.libc.glibc or "")
        bounded = bool(self.since or self.below)
        return (
            (not self.os or profile.os.id in self.os)
            and self.arch in ("", profile.arch)
            and (bool(glibc) or not bounded)
            and self.since <= glibc
            and (not self.below or glibc < self.below)
        )


@dataclass(frozen=True)
class Libraries:
    """All of the data file, typed. ``openssl``: by the first digits of its version."""

    base: tuple[Base, ...]
    usual: frozenset[str]
    openssl: Mapping[str, frozenset[str]]
    multiarch: frozenset[str]


@cache
def load() -> Libraries:
    """The facts that travel with this version."""
    text = (resources.files("sampan") / "data" / "target_libraries.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Libraries(
        base=tuple(
            Base(
                frozenset(one["libraries"]),
                frozenset(one.get("os", ())),
                one.get("arch", ""),
                number(one.get("since", "")),
                number(one.get("below", "")),
            )
            for one in data["base"]
        ),
        usual=frozenset(data["usual"]["libraries"]),
        openssl={version: frozenset(names) for version, names in data["openssl"].items() if version != "source"},
        multiarch=frozenset(data["multiarch"]["os"]),
    )


def certain(profile: TargetProfile, rules: Rules) -> frozenset[str]:
    """What the target has for sure: by its system, or because its profile says so. What a survey did not find where
    the system should have it is not there."""
    known = load()
    found = frozenset().union(
        profile.libraries or (),
        rules.gcc_libraries if profile.libc.glibcxx else (),
        rules.driver_libraries if profile.gpus else (),
        (_GOMP,) if profile.libc.gomp else (),
        *(one.libraries for one in known.base if one.fits(profile)),
        *(names for version, names in known.openssl.items() if f"{profile.openssl}.".startswith(f"{version}.")),
    )
    return rules.glibc_libraries | (found - frozenset(profile.absent_libraries))


def probable(profile: TargetProfile) -> frozenset[str]:
    """What it may well have, although nothing says so."""
    known = load()
    usual = known.usual.union(*(() if profile.openssl else known.openssl.values()))
    return usual - frozenset(profile.absent_libraries)


def multiarch(profile: TargetProfile) -> bool:
    """Whether ``$LIB`` in a search path is ``lib/TRIPLET`` on that system."""
    return profile.os.id in load().multiarch
