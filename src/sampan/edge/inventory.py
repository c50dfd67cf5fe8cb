"""What a made folder held when it was made: damage that came later is seen before the folder is taken again.

One JSON line a file: path, size, time of change (ns), SHA-256; a link's line has its target in place of the hash.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from sampan import disk
from sampan.edge.verify import sha256_of

_Entries = dict[str, tuple[int, int]]  # path -> size, time of change


def record(folder: Path, place: Path) -> None:
    """Write the inventory of ``folder`` to the file ``place``, whole or not at all. Raises OSError."""
    lines = (
        json.dumps([path, size, changed, _content(folder, path)])
        for path, (size, changed) in _entries(folder).items()
    )
    disk.write(place, "".join(f"{line}\n" for line in lines).encode())


def holds(folder: Path, place: Path) -> bool:
    """Whether ``folder`` is still what ``place`` says: the same files, each of the same size and content.

    A content is read again only where the time of change differs, so that thousands of files cost milliseconds. Bits
    that flip under an unchanged size and time are not seen here; what is bundled is hashed once more.
    Without an inventory, or with one that is cut, the answer is no.
    """
    try:
        wanted = dict(_read(place))
        found = _entries(folder)
        if wanted.keys() != found.keys() or any(wanted[path][0] != size for path, (size, _) in found.items()):
            return False
        touched = (path for path, (_, changed) in found.items() if wanted[path][1] != changed)
        return all(_content(folder, path) == wanted[path][2] for path in touched)
    except (OSError, ValueError, TypeError):
        return False


def _read(place: Path) -> Iterator[tuple[str, tuple[int, int, str]]]:
    """Raises OSError, ValueError."""
    for line in place.read_text(encoding="ascii").splitlines():
        path, size, changed, content = json.loads(line)
        yield path, (size, changed, content)


def _content(folder: Path, path: str) -> str:
    where = folder / path
    return f"-> {where.readlink()}" if where.is_symlink() else sha256_of(where)


def _entries(folder: Path) -> _Entries:
    """All that is no folder, sorted. Raises OSError."""
    return dict(sorted(_walk(str(folder), "")))


def _walk(folder: str, before: str) -> Iterator[tuple[str, tuple[int, int]]]:
    with os.scandir(folder) as listing:
        for entry in listing:
            path = before + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, f"{path}/")
            else:
                facts = entry.stat(follow_symlinks=False)
                yield path, (facts.st_size, facts.st_mtime_ns)
