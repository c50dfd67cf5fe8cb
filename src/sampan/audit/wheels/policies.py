"""The promises of platform tags, read from ``data/manylinux.toml``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sampan.audit.numbers import number, split_version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAMED = re.compile(r"(manylinux\d{1,5})_(\w+)|manylinux_(\d{1,5})_(\d{1,5})_(\w+)")
_SPECIAL = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}  # glibc 2.36 NEWS


@dataclass(frozen=True)
class Policies:
    """``versions``: by policy (``2_17``) and architecture, the highest version of each family. In ascending order."""

    versions: Mapping[tuple[int, int], Mapping[str, Mapping[str, str]]]
    allowed: frozenset[str]
    since: Mapping[str, tuple[int, int]]
    alias: Mapping[str, tuple[tuple[int, int], frozenset[str]]]
    first: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Tag:
    """One platform tag. ``policy`` None: no manylinux tag; ``possible``: some pip may take it."""

    text: str
    arch: str
    policy: tuple[int, int] | None = None
    possible: bool = True


@cache
def load() -> Policies:
    """The policies that travel with this version."""
    data = tomllib.loads((resources.files("sampan") / "data" / "manylinux.toml").read_text(encoding="utf-8"))
    return Policies(
        versions={_pair(name): one for name, one in data["policy"].items()},
        allowed=frozenset((*data["allowed"]["libraries"], *data["allowed"]["loaders"])),
        since={name: _pair(policy) for name, policy in data["allowed"]["since"].items()},
        alias={name: (_pair(one["means"]), frozenset(one["arch"])) for name, one in data["alias"].items()},
        first={arch: _pair(policy) for arch, policy in data["first"].items()},
    )


def _pair(policy: str) -> tuple[int, int]:
    major, minor = policy.split("_")
    return int(major), int(minor)


def parse(platform: str) -> Tag:
    """One platform of a wheel's name, such as ``manylinux_2_17_aarch64``."""
    known, found = load(), _NAMED.fullmatch(platform)
    if not found:
        for prefix in ("linux_", "musllinux_"):
            if platform.startswith(prefix):
                arch = platform[len(prefix) :] if prefix == "linux_" else re.sub(r"^\d+_\d+_", "", platform[10:])
                return Tag(platform, arch)
        return Tag(platform, "")
    if found[1]:
        if found[1] not in known.alias:
            return Tag(platform, found[2], None, possible=False)
        policy, archs = known.alias[found[1]]
        return Tag(platform, found[2], policy, found[2] in archs)
    policy, arch = (int(found[3]), int(found[4])), found[5]
    return Tag(platform, arch, policy, policy >= known.first.get(arch, policy))


def ceilings(policy: tuple[int, int], arch: str) -> Mapping[str, str]:
    """The highest version of each family under that policy. One without a table has the table before it, and its own
    glibc (PEP 600: ``manylinux_X_Y`` means glibc X.Y).
    """
    known = load().versions
    nearest = max((each for each in known if each <= policy), default=min(known))
    table = {**known[nearest]["versions"], **known[nearest].get(arch, {})}
    return table if nearest == policy else {**table, "GLIBC": f"{policy[0]}.{policy[1]}"}


def floor(needs: Iterable[tuple[str, str]], arch: str) -> tuple[tuple[int, int] | None, str]:
    """The lowest policy that allows all of ``needs`` ((library, version or "") of the system), and what forces it.

    None where no policy allows it; then the second is the library or version that none allows.
    """
    height: tuple[bool, tuple[int, ...]] = (False, ())
    lowest, reason = load().first.get(arch, (2, 5)), ""
    for library, version in needs:
        policy = _least(library, version, arch)
        if policy is None:
            return None, f"{library} {version}".strip()
        family, numbers = split_version(version)
        rank = (family == "GLIBC", numbers)
        if policy > lowest or (policy == lowest and reason and rank > height):
            lowest, height, reason = policy, rank, version or library
    return lowest, reason


def _least(library: str, version: str, arch: str) -> tuple[int, int] | None:
    known = load()
    if library not in known.allowed and library not in known.since:
        return None
    start = known.since.get(library, (0, 0))
    if not version:
        return start
    family, wanted = split_version(_SPECIAL.get(version, version))
    if not wanted:  # a version without a number, such as CXXABI_TM_1: older than every policy that matters
        return start
    fitting = [policy for policy in known.versions if policy >= start and _allows(policy, arch, family, wanted)]
    if family == "GLIBC" and len(wanted) > 1:  # PEP 600: the policy of that very glibc needs no table
        fitting.append((wanted[0], wanted[1]))
    return min(fitting, default=None)


def _allows(policy: tuple[int, int], arch: str, family: str, wanted: tuple[int, ...]) -> bool:
    """Families that no table names (LIBGOMP…) are as old as the libraries that may be used."""
    have = ceilings(policy, arch).get(family)
    return wanted <= number(have) if have else family not in _FAMILIES


_FAMILIES = frozenset(("GLIBC", "GLIBCXX", "CXXABI", "GCC", "ZLIB", "LIBATOMIC"))
