"""What is to be audited: the files below the given paths, and those inside of archives, unpacked for reading.

Links are not followed out of what was given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import category

from sampan import disk
from sampan.audit.archives.contents import Contents
from sampan.audit.archives.limits import MAX_DEPTH, Budget
from sampan.audit.archives.unpack import is_archive, unpack
from sampan.errors import BadInputError

_MAX_LINKS = 40  # as many as the kernel follows


@dataclass(frozen=True)
class Archive:
    """One archive that was opened. ``folder``: where its contents are; ``given``: named by the user himself."""

    name: str
    shown: str
    folder: str
    given: bool
    contents: Contents


@dataclass
class Subjects:
    """``files``: the name to show by absolute path, free of links. ``aliases``: a link's path -> its file's.

    ``others``: how many files inside of archives were read without being written out.
    """

    files: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    archives: list[Archive] = field(default_factory=list)
    others: int = 0


def collect(paths: Iterable[Path], scratch: Path, tick: Callable[[], None]) -> Subjects:
    """Every file below ``paths``, archives opened into ``scratch``. Raises BadInputError, FilesystemError."""
    found, budget = Subjects(), Budget()
    for path in paths:
        if not path.exists():
            raise BadInputError("file.missing", path=str(path))
        for real, shown in walk(path, found.aliases):
            found.files.setdefault(real, sayable(shown))
            if is_archive(real):
                _open(found, real, shown, scratch, budget, depth=1, given=not path.is_dir())
            tick()
    return found


def walk(subject: Path, aliases: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(absolute path, path to show) of every regular file; links are noted, not followed."""
    if not subject.is_dir():
        if not subject.is_file():  # a pipe would wait for ever
            raise BadInputError("file.unreadable", path=str(subject), detail="not a regular file")
        yield os.path.realpath(subject), str(subject)
        return
    top = os.path.realpath(subject)
    for folder, _, names in os.walk(top, onerror=_refuse):
        for name in names:
            path = f"{folder}/{name}"
            if os.path.islink(path):  # noqa: PTH114  (a string walk: a Path for each of 10,000 files costs a second)
                aliases[path] = os.path.realpath(path)
            elif os.path.isfile(path):  # noqa: PTH113
                yield path, str(subject / path[len(top) + 1 :])


def _refuse(error: OSError) -> None:
    raise BadInputError("file.unreadable", path=str(error.filename), detail=error.strerror)


def _open(found: Subjects, path: str, shown: str, scratch: Path, budget: Budget, *, depth: int, given: bool) -> None:
    folder = scratch / str(len(found.archives))
    with disk.filesystem_errors(scratch):
        folder.mkdir()
        contents = _unpacked(Path(path), folder, budget, depth)
    found.archives.append(Archive(os.path.basename(path), sayable(shown), str(folder), given, contents))  # noqa: PTH119
    found.others += contents.members - len(contents.files)
    found.aliases.update(_aliases(contents))
    for name in contents.files:
        inner = f"{folder}/{name}"
        found.files[inner] = sayable(f"{shown}!{name}")
        if is_archive(name):
            _open(found, inner, f"{shown}!{name}", scratch, budget, depth=depth + 1, given=given)


def _unpacked(path: Path, folder: Path, budget: Budget, depth: int) -> Contents:
    if depth > MAX_DEPTH:
        contents = Contents(folder)
        contents.fault("bomb", f"lies more than {MAX_DEPTH} archives deep")
        return contents
    try:
        return unpack(path, folder, budget)
    except PermissionError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error


def _aliases(contents: Contents) -> Iterator[tuple[str, str]]:
    """Links inside of the archive as absolute paths, those to further links followed."""
    for name in contents.links:
        place = name
        for _ in range(_MAX_LINKS):
            if place not in contents.links:
                yield f"{contents.folder}/{name}", f"{contents.folder}/{place}"
                break
            place = contents.links[place]


def sayable(name: str) -> str:
    """What can be written down and shown: bytes that are no text, and what would move a terminal, as escapes."""
    plain = name.encode("utf-8", "backslashreplace").decode()
    return plain if plain.isprintable() else "".join(_escaped(one) for one in plain)


def _escaped(one: str) -> str:
    """Controls, and marks that turn the direction of writing, as escapes; other characters as they are."""
    return one.encode("unicode_escape").decode() if category(one) in ("Cc", "Cf") else one
