"""Which file would serve which NEEDED entry, and which files see one another's symbols: the GNU loader on values.

Order of the search (ld.so(8), glibc elf/dl-load.c): the RPATH of the asking file and of those that loaded it, unless
the asking file has a RUNPATH; the library path; the RUNPATH of the asking file; the system's folders. In each folder
the glibc-hwcaps subfolders come first. A library that is loaded already, under its name or its SONAME, is not
searched again. Files of another architecture are passed over.

What a Python program loads later (extension modules, plug-ins) sees its symbols and is served by what it has loaded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sampan.audit.folders import search_folders
from sampan.audit.kinds import fits, is_extension, is_program
from sampan.audit.world import World

TARGET = "target:"  # not a path: the target's own library serves
Edges = dict[tuple[str, str], "str | None"]


@dataclass(frozen=True)
class Scope:
    """Files that look up symbols in one another. ``complete``: False where others, unknown, take part as well."""

    files: tuple[str, ...]
    complete: bool


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
    process = _Process(world)
    starts = {path: process.load(path, late=path not in programs) for path in usable}
    by_others = {path for start, edges in starts.items() for path in _loaded(edges) if path != start}
    served: Edges = {}
    scopes: dict[str, list[Scope]] = {}
    for start in sorted(starts, key=lambda path: (path in by_others, path)):
        if start in scopes:  # an earlier one has loaded it
            continue
        for edge, by in starts[start].items():
            served[edge] = by if served.get(edge, by) is not None else None  # missing once is missing
        scope = process.scope(start, starts[start], late=start not in programs)
        for path in dict.fromkeys((start, *_loaded(starts[start]))):
            scopes.setdefault(path, []).append(scope)
    return Closure(
        served=served,
        scopes={path: tuple(found) for path, found in scopes.items()},
        at_start=frozenset(path for start in programs for path in (start, *_loaded(starts[start]))),
        rivals=_rivals(world, starts),
        carried={
            facts.soname: path for path in usable if path in world.shown and (facts := world.files[path]).soname
        },
    )


def _loaded(edges: Edges) -> Iterator[str]:
    return (by for by in edges.values() if by is not None and by != TARGET)


def _rivals(world: World, starts: Mapping[str, Edges]) -> dict[str, frozenset[str]]:
    found: dict[str, dict[str, str]] = {}
    for start, edges in starts.items():
        if is_extension(world.files[start]):
            for (_, name), by in edges.items():
                if by is not None and by != TARGET:
                    found.setdefault(name, {})[world.digests.get(by, by)] = by
    return {name: frozenset(files.values()) for name, files in found.items() if len(files) > 1}


class _Process:
    """One loader's view of the world; what a Python program has in memory before it loads anything more."""

    def __init__(self, world: World) -> None:
        self._world, self._loader = world, world.loader
        self._on_target = world.on_target | world.unstated
        self._hwcaps = world.hwcaps
        self._python: str | None = None
        self._base: Edges = {}
        python = world.python
        if python:
            self._base = self.load(python, late=False)
            self._python = python

    def load(self, start: str, *, late: bool) -> Edges:
        """Breadth first, as the loader does. ``late``: into Python's process, where there is one."""
        edges: Edges = {}
        late = late and self._python is not None
        known = self._in_memory(late)
        queue: deque[tuple[str, tuple[str, ...]]] = deque([(start, (self._python,) if late and self._python else ())])
        seen = {start}
        while queue:
            path, loaders = queue.popleft()
            for name in self._world.files[path].needed:
                by = known.get(name) or self._search(path, loaders, name)
                edges[path, name] = by
                if by is None or by == TARGET:
                    continue
                self._remember(known, name, by)
                if by not in seen:
                    seen.add(by)
                    queue.append((by, (path, *loaders)))
        return edges

    def scope(self, start: str, edges: Edges, *, late: bool) -> Scope:
        """All whose symbols ``start`` and what it loads can bind to."""
        base = self._base if late else {}
        files = (self._python if late else None, *_loaded(base), start, *_loaded(edges), self._loader)
        served: Iterable[str | None] = (*base.values(), *edges.values())
        complete = all(by is not None and by != TARGET for by in served)
        return Scope(tuple(dict.fromkeys(filter(None, files))), complete and (not late or self._python is not None))

    def _in_memory(self, late: bool) -> dict[str, str]:
        """The private loader is there before anything else; later, all that Python has loaded."""
        known: dict[str, str] = {}
        if self._loader:
            known[self._world.files[self._loader].soname or "ld.so"] = self._loader
        for (_, name), by in self._base.items() if late else ():
            if by is not None and by != TARGET:
                self._remember(known, name, by)
        return known

    def _remember(self, known: dict[str, str], name: str, by: str) -> None:
        known[name] = by
        known.setdefault(self._world.files[by].soname or name, by)

    def _search(self, path: str, loaders: tuple[str, ...], name: str) -> str | None:
        if "/" not in name:
            for folder in search_folders(self._world, path, loaders):
                for place in (*(f"{folder}/{hwcap}" for hwcap in self._hwcaps), folder):
                    found = self._world.find(f"{place}/{name}")
                    if found and fits(self._world.files[found], self._world.arch):
                        return found
        return TARGET if name in self._on_target else None
