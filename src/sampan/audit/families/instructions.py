"""Instructions against the CPU's features, by how they are reached.

A CPU that meets an instruction it lacks ends the program with SIGILL ("Illegal instruction"): Linux signal(7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampan.audit.closure import Closure
from sampan.audit.instructions import knowledge
from sampan.audit.instructions.facts import GUARDED, START, UNGUARDED, Use
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_SHOWN = 8


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:  # noqa: ARG001
    """``isa.start``, ``isa.unguarded``, ``isa.guarded``, ``isa.limits``; ``isa.variant`` for a bundle's engine."""
    code = world.files[path].code
    if code is None:
        return
    licence = _licence(world.within_bundle(path))
    if licence is not None:
        yield from _variant(world.name(path), licence, code.uses)
        return
    have = frozenset(world.profile.cpu.features)
    missing = [use for use in code.uses if use.feature not in have]
    chooser = knowledge.load().dispatcher(path)
    start = [use for use in missing if use.reach == START]
    unguarded = [use for use in missing if use.reach == UNGUARDED and not chooser]
    guarded = [use for use in missing if use.reach == GUARDED or (use.reach == UNGUARDED and chooser)]
    severity = "error" if world.profile.cpu.features_known else "warning"
    for code_name, level, uses in (
        ("isa.start", severity, start),
        ("isa.unguarded", "warning", unguarded),
        ("isa.guarded", "info", guarded),
    ):
        if uses:
            yield Finding(code_name, level, world.name(path), _values(uses, world.profile.cpu.model, chooser))

    if missing and code.limits:
        yield Finding("isa.limits", "info", world.name(path), (("limits", ", ".join(code.limits)),))


def _licence(inside: str | None) -> frozenset[str] | None:
    """What the file may use because the launcher looks at the CPU before it takes it: engine/ENGINE/VARIANT/..."""
    parts = (inside or "").split("/")
    if len(parts) < 4 or parts[0] != "engine":
        return None
    return knowledge.variant_features().get(parts[2])


def _variant(name: str, licence: frozenset[str], uses: Sequence[Use]) -> Iterator[Finding]:
    beyond = [use for use in uses if use.reach in (START, UNGUARDED) and use.feature not in licence]
    if beyond:
        allowed = " ".join(sorted(licence))
        yield Finding("isa.variant", "error", name, (*_values(beyond, "", ""), ("allowed", allowed)))


def _values(uses: Sequence[Use], cpu: str, chooser: str) -> tuple[tuple[str, str], ...]:
    """The features with how often each is used, and the first place."""
    totals: dict[str, int] = {}
    for use in uses:
        totals[use.feature] = totals.get(use.feature, 0) + use.count
    shown = [f"{feature} ×{count}" for feature, count in totals.items()]
    more = f" +{len(shown) - _SHOWN}" if len(shown) > _SHOWN else ""
    first = min(uses, key=lambda use: use.address)
    guards = dict.fromkeys(use.root or chooser for use in uses if use.root or chooser)
    return (
        ("features", ", ".join(shown[:_SHOWN]) + more),
        ("cpu", cpu or "-"),
        ("function", first.function or "-"),
        ("address", f"{first.address:#x}"),
        ("offset", f"{first.offset:#x}"),
        ("root", "; ".join(guards) or "-"),
    )
