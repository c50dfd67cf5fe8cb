"""Symbol versions against the library that will really serve them: a bundled file, or the target's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sampan.audit import rules as known
from sampan.audit.closure import TARGET, Closure
from sampan.audit.facts import VersionNeed
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_SHOWN_SYMBOLS = 6
_OTHER = "closure.version"
_UNKNOWN = "ceiling.unknown"


@dataclass(frozen=True)
class _Miss:
    """One version that its server lacks; ``have`` is the server's highest of that family."""

    code: str
    need: VersionNeed
    server: str
    have: str


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:
    """One finding for each family: the highest version wanted, by which symbols, and what is there instead."""
    misses: dict[str, list[_Miss]] = {}
    for need in world.files[path].needs:
        miss = None if need.weak else _miss(path, need, world, closure)
        if miss:
            misses.setdefault(miss.code, []).append(miss)
    for code, found in misses.items():
        severity = "warning" if code == _UNKNOWN else "error"
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
    if rule is None:  # libgcc's and libgomp's own versions are older than any libstdc++ that a profile names
        return None
    ceiling: str | None = getattr(world.profile.libc, rule.fact)
    if ceiling is None:
        return _Miss(_UNKNOWN, need, server, "?")
    special = world.rules.special.get(need.version)
    wanted = known.number(special) if special else known.split_version(need.version)[1]
    return _Miss(rule.code, need, server, f"{family}_{ceiling}") if wanted > known.number(ceiling) else None


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
