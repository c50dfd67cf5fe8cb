"""Read what an audit needs from disk: the files to judge, and those next to them that may serve them.

Links are not followed out of what was given, and no library of this machine is ever taken for the target's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sampan.audit import elf, paths
from sampan.audit.facts import Damaged, ElfFacts
from sampan.audit.families import READERS, Reader
from sampan.audit.rules import ArchRules, Rules
from sampan.errors import BadInputError
from sampan.spec import layout
from sampan.spec.ports import Task


@dataclass
class Gathered:
    """Paths as in World. ``shown`` has every ELF file to be judged, sound or damaged; ``files_read`` counts all."""

    files: dict[str, ElfFacts] = field(default_factory=dict)
    damaged: dict[str, Damaged] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    files_read: int = 0


def gather(
    subjects: Iterable[Path], bundle: Path | None, arch: ArchRules, rules: Rules, task: Task | None
) -> Gathered:
    """Read every file below ``subjects``, then what their own search paths lead to. Raises BadInputError."""
    found = Gathered()
    for subject in subjects:
        if not subject.exists():
            raise BadInputError("file.missing", path=str(subject))
        for path, shown in _walk(subject, bundle, found.aliases):
            _take(found, path, shown)
            if task:
                task.advance()
    folder = bundle / rules.runtime / layout.LIBRARIES if bundle else None
    if folder and folder.is_dir():
        for path, _ in _walk(folder, bundle, found.aliases):
            _serve(found, path)
    _follow_search_paths(found, arch)
    return found


def _walk(subject: Path, bundle: Path | None, aliases: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(absolute path, path to show) of every regular file; links are noted, not followed."""
    if not subject.is_dir():
        if not subject.is_file():  # a pipe would wait for ever
            raise BadInputError("file.unreadable", path=str(subject), detail="not a regular file")
        real = os.path.realpath(subject)
        yield real, _shown(real, bundle, str(subject))
        return
    top = os.path.realpath(subject)
    for folder, _, names in os.walk(top, onerror=_refuse):
        for name in names:
            path = f"{folder}/{name}"
            if os.path.islink(path):  # noqa: PTH114  (a string walk: a Path for each of 10,000 files costs a second)
                aliases[path] = os.path.realpath(path)
            elif os.path.isfile(path):  # noqa: PTH113
                yield path, _shown(path, bundle, str(subject / path[len(top) + 1 :]))


def _refuse(error: OSError) -> None:
    raise BadInputError("file.unreadable", path=str(error.filename), detail=error.strerror)


def _shown(path: str, bundle: Path | None, given: str) -> str:
    root = f"{bundle}/" if bundle else ""
    return path[len(root) :] if root and path.startswith(root) else given


def _take(found: Gathered, path: str, shown: str) -> None:
    """One file to judge, once."""
    if path in found.shown:
        return
    found.files_read += 1
    facts = _read(path, READERS)
    if facts is not None:
        found.shown[path] = shown.encode("utf-8", "backslashreplace").decode()
        _keep(found, path, facts)


def _serve(found: Gathered, path: str) -> None:
    """One file that may serve others. A damaged one serves nobody."""
    if path not in found.files and path not in found.damaged:
        facts = _read(path)
        if isinstance(facts, ElfFacts):
            found.files[path] = facts


def _keep(found: Gathered, path: str, facts: ElfFacts | Damaged) -> None:
    if isinstance(facts, Damaged):
        found.damaged[path] = facts
    else:
        found.files[path] = facts


def _read(path: str, readers: Iterable[Reader] = ()) -> ElfFacts | Damaged | None:
    """None where the file is not ELF."""
    try:
        return elf.read(Path(path), readers) if elf.is_elf(Path(path)) else None
    except OSError as error:
        raise BadInputError("file.unreadable", path=path, detail=error.strerror) from error


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
