"""What is told of a file from outside: its rights, and which files of one SONAME are the same."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from sampan.audit.facts import ElfFacts
from sampan.audit.subjects import Archive

_SET_ID = stat.S_ISUID | stat.S_ISGID


def set_id(paths: Iterable[str], archives: Iterable[Archive] = ()) -> frozenset[str]:
    """The files that run with their owner's rights, here or where an archive is unpacked. Raises OSError."""
    here = (path for path in paths if Path(path).stat().st_mode & _SET_ID)
    packed = (f"{archive.folder}/{name}" for archive in archives for name in archive.contents.set_id)
    return frozenset((*here, *packed))


def digests(files: Mapping[str, ElfFacts]) -> dict[str, str]:
    """SHA-256 of the files that share their SONAME with another one, by path. Raises OSError."""
    by_name: dict[str, list[str]] = {}
    for path, facts in files.items():
        if facts.soname:
            by_name.setdefault(facts.soname, []).append(path)
    return {path: _digest(path) for paths in by_name.values() if len(paths) > 1 for path in paths}


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
