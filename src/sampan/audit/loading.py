"""What one process loads, and by which file each NEEDED entry is served: the GNU loader on values.

Order of the search (ld.so(8), glibc elf/dl-load.c): the RPATH of the asking file and of those that loaded it, unless
the asking file has a RUNPATH; the library path; the RUNPATH of the asking file; the system's folders. In each folder
the glibc-hwcaps subfolders come first. A library that is loaded already, under its name or its SONAME, is not
searched again. Files of another architecture are passed over.

What a Python program loads later (extension modules, plug-ins) sees its symbols and is served by what it has loaded.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sampan.audit.folders import search_folders
from sampan.audit.kinds import fits, is_program
from sampan.audit.world import World

TARGET = "target:"  # not a path: the target's own library serves
Edges = dict[tuple[str, str], "str | None"]
_PYTHON = re.compile(r"python3(\.\d+)?")


@dataclass(frozen=True)
class Scope:
    """Files that look up symbols in one another. ``complete``: False where others, unknown, take part as well."""

    files: tuple[str, ...]
    complete: bool


def loaded(edges: Edges) -> Iterator[str]:
    """The files that serve."""
    return (by for by in edges.values() if by is not None and by != TARGET)


class Process:
    """One loader's view of the world; what a Python program has in memory before it loads anything more."""

    def __init__(self, world: World) -> None:
        self._world, self._loader = world, world.loader
        self._on_target = world.on_target | world.unstated
        self._hwcaps = world.hwcaps
        self._python: str | None = None
        self._base: Edges = {}
        python = _python(world)
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
        files = (self._python if late else None, *loaded(base), start, *loaded(edges), self._loader)
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


def _python(world: World) -> str | None:
    """The Python program whose process loads the extension modules; None where there is none or a choice."""
    found = [
        path
        for path, facts in world.files.items()
        if _PYTHON.fullmatch(posixpath.basename(path))
        and fits(facts, world.arch)
        and is_program(path, facts)
        and (world.private is None or _runtime_program(path, world))
    ]
    return found[0] if len(found) == 1 else None


def _runtime_program(path: str, world: World) -> bool:
    return any(fnmatchcase(path, f"{world.private}/{each}") for each in world.rules.runtime_programs)
