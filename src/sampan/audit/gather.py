"""Read what an audit needs from disk: the files to judge, and those next to them that may serve them.

No library of this machine is ever taken for the target's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sampan.audit import paths, reading
from sampan.audit.architectures import ArchRules
from sampan.audit.facts import Damaged, ElfFacts
from sampan.audit.rules import load
from sampan.audit.subjects import Subjects, walk
from sampan.spec import layout


@dataclass
class Gathered:
    """Paths as in World. ``shown`` has every ELF file to be judged, sound or damaged; ``files_read`` counts all."""

    files: dict[str, ElfFacts] = field(default_factory=dict)
    damaged: dict[str, Damaged] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    files_read: int = 0


def gather(
    subjects: Subjects, runtime: Path | None, arch: ArchRules, cache: Path | None, tick: Callable[[str], None]
) -> Gathered:
    """Read every file of ``subjects``, then what their own search paths lead to. Raises BadInputError.

    ``runtime``: the private runtime that serves them. ``cache``: see ``reading``.
    """
    found = Gathered(aliases=dict(subjects.aliases), files_read=len(subjects.files) + subjects.others)
    _keep(found, reading.read_all(tuple(subjects.files), cache, tick), subjects.files)
    folder = runtime / layout.LIBRARIES if runtime else None
    if folder and folder.is_dir():
        for path, _ in walk(folder, found.aliases):
            _serve(found, path)
    for pattern in load().runtime_programs if runtime else ():  # Python's own symbols are in its program
        for program in sorted(runtime.glob(pattern) if runtime else ()):
            _serve_through_links(found, str(program))
    _follow_search_paths(found, arch)
    return found


def _keep(found: Gathered, facts: Mapping[str, ElfFacts | Damaged], shown: Mapping[str, str]) -> None:
    for path, said in facts.items():
        found.shown[path] = shown[path]
        if isinstance(said, Damaged):
            found.damaged[path] = said
        else:
            found.files[path] = said


def _serve(found: Gathered, path: str) -> None:
    """One file that may serve others. A damaged one serves nobody."""
    if path not in found.files and path not in found.damaged:
        facts = reading.read_one(path)
        if isinstance(facts, ElfFacts):
            found.files[path] = facts


def _follow_search_paths(found: Gathered, arch: ArchRules) -> None:
    """Read the libraries that RPATH and RUNPATH lead to, and theirs, until nothing new is found."""
    done: set[tuple[str, str]] = set()
    fresh = set(found.files)
    folders: set[str] = set()
    wanted: set[str] = set()
    while fresh:
        for path in fresh:
            facts = found.files[path]
            wanted |= set(facts.needed)
            own = (entry for entry in (*facts.rpath, *facts.runpath) if paths.from_origin(entry))
            plain = {paths.expand(entry, path, lib, arch.triplets[0]) for entry in own for lib in arch.lib}
            folders |= plain | {f"{folder}/{hwcap.folder}" for folder in plain for hwcap in arch.hwcaps}
        before = set(found.files)
        for folder in folders:
            for name in _listing(folder) & wanted:
                if (folder, name) not in done:
                    done.add((folder, name))
                    _serve_through_links(found, f"{folder}/{name}")
        fresh = set(found.files) - before


def _listing(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))  # noqa: PTH208
    except OSError:  # a search path may name a folder that is not there: the loader passes over it too
        return set()


def _serve_through_links(found: Gathered, path: str) -> None:
    real = os.path.realpath(path)
    if real != path:
        found.aliases[path] = real
    if os.path.isfile(real):  # noqa: PTH113
        _serve(found, real)
