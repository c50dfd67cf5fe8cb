"""Symbol versions against the library that will really serve them: a bundled file, or the target's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sampan.audit import numbers as known
from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts, VersionNeed
from sampan.audit.loading import TARGET
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_SHOWN_SYMBOLS = 6
_OTHER = "closure.version"
_UNKNOWN = "ceiling.unknown"
_MARKER = "GLIBC_ABI_"
_NEWEST = (1 << 30,)


@dataclass(frozen=True)
class _Miss:
    """One version that its server lacks; ``have`` is the server's highest of that family."""

    code: str
    need: VersionNeed
    server: str
    have: str


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:
    """One finding for each family: the highest version wanted, by which symbols, and what is there instead.

    What the target's own GLIBC_PRIVATE holds nobody knows: the loader finds the version, but perhaps not the symbol.
    """
    misses: dict[str, list[_Miss]] = {}
    for need in world.files[path].needs:
        miss = None if need.weak else _miss(path, need, world, closure)
        if miss:
            misses.setdefault(miss.code, []).append(miss)
    for code, found in misses.items():
        private = all(miss.need.version == world.rules.private_abi and miss.have == "-" for miss in found)
        severity = "warning" if code == _UNKNOWN or private else "error"
        yield Finding(code, severity, world.name(path), _values(found))


def _miss(path: str, need: VersionNeed, world: World, closure: Closure) -> _Miss | None:
    server = closure.served.get((path, need.library))
    if server is None:  # nothing serves the library: closure.missing says so
        return None
    family = known.split_version(need.version)[0]
    rule = world.rules.family.get(family)
    if server == TARGET:
        return _miss_on_target(need, family, world)
    versions = world.files[server].provides
    if need.version in versions or not versions:  # a library without versions serves any: the loader only warns
        return None
    have = _highest(version for version in versions if known.split_version(version)[0] == family)
    return _Miss(rule.code if rule else _OTHER, need, world.name(server), have)


def _miss_on_target(need: VersionNeed, family: str, world: World) -> _Miss | None:
    rule = world.rules.family.get(family)
    server = f"{world.profile.name}:{need.library}"
    if need.version == world.rules.private_abi:
        return _Miss(_OTHER, need, server, "-")
    if rule is None:
        return None
    ceiling = world.ceiling(rule.fact)
    if ceiling is None:
        return _Miss(_UNKNOWN, need, server, "?")
    return (
        _Miss(rule.code, need, server, f"{family}_{ceiling}")
        if _wanted(need, world) > known.number(ceiling)
        else None
    )


def _wanted(need: VersionNeed, world: World) -> tuple[int, ...]:
    """A marker of glibc's that is not in the table is newer than all that is known."""
    special = world.rules.special.get(need.version)
    if special or not need.version.startswith(_MARKER):
        return known.number(special) if special else known.split_version(need.version)[1]
    return _NEWEST


def too_new_for_target(facts: ElfFacts, library: str, world: World) -> str | None:
    """The highest version that the file wants of ``library`` and the target's own lacks; None where it has all."""
    wanted = [need for need in facts.needs if need.library == library and not need.weak]
    misses = [miss for need in wanted if (miss := _miss_on_target(need, known.split_version(need.version)[0], world))]
    late = [miss.need.version for miss in misses if miss.code != _UNKNOWN]
    return max(late, key=known.split_version, default=None)


def _highest(versions: Iterable[str]) -> str:
    return max(versions, key=known.split_version, default="-")


def _values(misses: list[_Miss]) -> tuple[tuple[str, str], ...]:
    ordered = sorted(misses, key=lambda miss: known.split_version(miss.need.version)[1], reverse=True)
    top = ordered[0]
    names = [f"{symbol}@{miss.need.version}" for miss in ordered for symbol in miss.need.symbols]
    shown = ", ".join(names[:_SHOWN_SYMBOLS]) + (f" +{len(names) - _SHOWN_SYMBOLS}" if names[_SHOWN_SYMBOLS:] else "")
    return (
        ("highest", top.need.version),
        ("library", top.need.library),
        ("have", top.have),
        ("server", top.server),
        ("symbols", shown or "-"),
    )
