"""Which file would serve which NEEDED entry, and which files see one another's symbols, in all of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sampan.audit.kinds import fits, is_extension, is_program
from sampan.audit.loading import TARGET, Edges, Process, Scope, loaded
from sampan.audit.world import World


@dataclass(frozen=True)
class Closure:
    """``served``: (asking file, NEEDED name) -> path, TARGET, or None where nothing serves. ``scopes``: by file, all
    that it takes part in. ``at_start``: files that a program loads when it starts. ``rivals``: by NEEDED name, the
    files that serve it to modules of one Python process, where they are different ones. ``carried``: a file to be
    judged by its SONAME.
    """

    served: Edges = field(default_factory=dict)
    scopes: Mapping[str, tuple[Scope, ...]] = field(default_factory=dict)
    at_start: frozenset[str] = frozenset()
    rivals: Mapping[str, frozenset[str]] = field(default_factory=dict)
    carried: Mapping[str, str] = field(default_factory=dict)

    def missing(self, path: str, needed: tuple[str, ...]) -> tuple[str, ...]:
        """The NEEDED names of a file that nothing serves."""
        return tuple(name for name in needed if self.served.get((path, name), "") is None)


def simulate(world: World) -> Closure:
    """Start every file that no other file loads, and see what serves it and all that it loads."""
    usable = [path for path, facts in world.files.items() if fits(facts, world.arch)]
    programs = {path for path in usable if is_program(path, world.files[path])}
    process = Process(world)
    starts = {path: process.load(path, late=path not in programs) for path in usable}
    by_others = {path for start, edges in starts.items() for path in loaded(edges) if path != start}
    served: Edges = {}
    scopes: dict[str, list[Scope]] = {}
    for start in sorted(starts, key=lambda path: (path in by_others, path)):
        if start in scopes:  # an earlier one has loaded it
            continue
        for edge, by in starts[start].items():
            served[edge] = by if served.get(edge, by) is not None else None  # missing once is missing
        scope = process.scope(start, starts[start], late=start not in programs)
        for path in dict.fromkeys((start, *loaded(starts[start]))):
            scopes.setdefault(path, []).append(scope)
    return Closure(
        served=served,
        scopes={path: tuple(found) for path, found in scopes.items()},
        at_start=frozenset(path for start in programs for path in (start, *loaded(starts[start]))),
        rivals=_rivals(world, starts),
        carried={
            facts.soname: path for path in usable if path in world.shown and (facts := world.files[path]).soname
        },
    )


def _rivals(world: World, starts: Mapping[str, Edges]) -> dict[str, frozenset[str]]:
    found: dict[str, dict[str, str]] = {}
    for start, edges in starts.items():
        if is_extension(world.files[start]):
            for (_, name), by in edges.items():
                if by is not None and by != TARGET:
                    found.setdefault(name, {})[world.digests.get(by, by)] = by
    return {name: frozenset(files.values()) for name, files in found.items() if len(files) > 1}
