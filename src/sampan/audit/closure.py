"""Which file would serve which NEEDED entry: the GNU loader's search, simulated on values.

Order (ld.so(8), glibc elf/dl-load.c): the RPATH of the asking file and of those that loaded it, unless the asking
file has a RUNPATH; the library path; the RUNPATH of the asking file; the system's folders. A library that is loaded
already, under its name or its SONAME, is not searched again. Files of another architecture are passed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from sampan.audit import paths
from sampan.audit.world import World, fits

TARGET = "target:"  # not a path: the target's own library serves


@dataclass(frozen=True)
class Closure:
    """``served``: (asking file, NEEDED name) -> path, TARGET, or None where nothing serves."""

    served: dict[tuple[str, str], str | None]

    def missing(self, path: str, needed: tuple[str, ...]) -> tuple[str, ...]:
        """The NEEDED names of a file that nothing serves."""
        return tuple(name for name in needed if self.served.get((path, name), "") is None)


def simulate(world: World) -> Closure:
    """Start every file that no other file loads, and see what serves it and all that it loads."""
    starts = {
        path: _load(world, path) for path, facts in world.files.items() if facts.needed and fits(facts, world.arch)
    }
    loaded_by_others = {path for start, edges in starts.items() for path in _loaded(edges) if path != start}
    served: dict[tuple[str, str], str | None] = {}
    order = sorted(starts, key=lambda path: (path in loaded_by_others, path))
    for start in order:
        if not any((start, name) in served for name in world.files[start].needed):
            for edge, by in starts[start].items():
                served[edge] = by if served.get(edge, by) is not None else None  # missing once is missing
    return Closure(served)


def _loaded(edges: dict[tuple[str, str], str | None]) -> set[str]:
    return {by for by in edges.values() if by is not None and by != TARGET}


def _load(world: World, start: str) -> dict[tuple[str, str], str | None]:
    """Breadth first, as the loader does."""
    edges: dict[tuple[str, str], str | None] = {}
    known = _at_start(world)
    queue: deque[tuple[str, tuple[str, ...]]] = deque([(start, ())])
    seen = {start}
    while queue:
        path, loaders = queue.popleft()
        for name in world.files[path].needed:
            by = known.get(name) or _search(world, path, loaders, name)
            edges[path, name] = by
            if by is None or by == TARGET:
                continue
            known[name] = by
            known.setdefault(world.files[by].soname or name, by)
            if by not in seen:
                seen.add(by)
                queue.append((by, (path, *loaders)))
    return edges


def _at_start(world: World) -> dict[str, str]:
    """The private loader is in memory before anything else, under its SONAME."""
    loader = world.loader
    soname = world.files[loader].soname if loader else None
    return {soname: loader} if loader and soname else {}


def _search(world: World, path: str, loaders: tuple[str, ...], name: str) -> str | None:
    if "/" not in name:
        for folder in search_folders(world, path, loaders):
            found = world.find(f"{folder}/{name}")
            if found and fits(world.files[found], world.arch):
                return found
    return TARGET if name in world.on_target else None


def search_folders(world: World, path: str, loaders: tuple[str, ...] = ()) -> Iterator[str]:
    """The folders that the loader would look into for ``path``'s libraries, in order."""
    facts = world.files[path]
    if not facts.runpath:
        for each in (path, *loaders):
            yield from _expanded(world, each, world.files[each].rpath)
    if world.libraries is not None:
        yield world.libraries
    yield from _expanded(world, path, facts.runpath)


def _expanded(world: World, path: str, entries: tuple[str, ...]) -> Iterator[str]:
    lib = world.arch.lib[0 if world.bundle is None else 1]
    for entry in entries:
        if paths.from_origin(entry):  # any other folder is the target's, whose contents nobody knows
            yield paths.expand(entry, path, lib, world.profile.arch)
