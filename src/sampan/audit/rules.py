"""The audit's knowledge, read from ``data/audit.toml``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sampan.audit import architectures
from sampan.audit.architectures import ArchRules
from sampan.audit.numbers import number

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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
    """From glibc ``since`` on, ``reserve`` bytes of static TLS remain for libraries that are opened late.

    ``users``: libraries of the target that want such room, wherever they are from.
    """

    since: tuple[int, ...]
    reserve: int
    users: frozenset[str]


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
        arch={name: architectures.read(name, data) for name in data["arch"]},
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
        static_tls=StaticTls(number(tls["since"]), tls["reserve"], frozenset(tls["users"])),
        stack_refused_since=number(data["executable_stack"]["refused_since"]),
        runtime=data["bundle"]["runtime"],
        runtime_programs=tuple(data["bundle"]["programs"]),
        private_abi=data["bundle"]["private_abi"],
    )
