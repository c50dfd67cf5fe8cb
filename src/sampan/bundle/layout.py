"""The names inside a bundle, and the order and modes of its files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sampan.errors import BadInputError

RUNTIME, APP, ENGINE, WEIGHTS = "runtime", "app", "engine", "weights"
LAUNCHER = "sampan"
SCRIPTS = ("README.txt", "install.sh", "start.sh")
PLAN, PROFILE = "plan.json", "profile.json"
WEIGHTS_INFO, GOLDEN = "weights/weights.json", "weights/golden.json"
REHEARSAL, MANIFEST, SUMS = "rehearsal.txt", "manifest.json", "SHA256SUMS"
SBOM, APPROVAL = "sbom.cdx.json", "APPROVAL.txt"
SIGNATURE = "SHA256SUMS.dsse"  # signs SHA256SUMS, so it cannot be listed there
UNLISTED = frozenset((SUMS, SIGNATURE))
WORK = ".sampan-work.json"  # marks an assembled, not yet sealed folder as ours; gone after sealing

PROGRAM_MODE, FILE_MODE, FOLDER_MODE = 0o755, 0o644, 0o755
EPOCH = 315532800  # 1980-01-01T00:00:00Z, the earliest time that zip can hold too

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_NAME_BYTES = 255  # of one path component, on every Linux file system
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Entry:
    """One thing in a folder. ``path`` is relative with ``/``; ``kind`` is file, folder, link or special."""

    path: str
    kind: str
    mode: int  # permission bits
    size: int


def folder_name(name: str, release: int) -> str:
    """``<name>-<release>``. Raises BadInputError where that is no safe name for a folder."""
    if not _NAME.fullmatch(name) or release < 0:
        raise BadInputError("bundle.name", name=f"{name}-{release}")
    return f"{name}-{release}"


def entries(folder: Path) -> tuple[Entry, ...]:
    """All that ``folder`` holds, links not followed, sorted by the bytes of the path. Raises OSError."""
    return tuple(sorted(_walk(folder, ""), key=lambda entry: os.fsencode(entry.path)))


def _walk(folder: Path, prefix: str) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        for item in found:
            facts = item.stat(follow_symlinks=False)
            path = prefix + item.name
            yield Entry(path, _kind(facts.st_mode), stat.S_IMODE(facts.st_mode), facts.st_size)
            if stat.S_ISDIR(facts.st_mode):
                yield from _walk(Path(item.path), f"{path}/")


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"


def fault_of_name(path: str) -> str | None:
    """Why ``path`` may not be in a bundle, in one catalogue word; None where it may.

    Newlines and backslashes are refused because coreutils escapes them in checksum lines and BusyBox does not.
    """
    parts = path.split("/")
    if path.startswith("/"):
        return "absolute"
    if any(part in ("", ".", "..") for part in parts):
        return "dots"
    if "\\" in path or _CONTROL.search(path):
        return "characters"
    try:
        too_long = any(len(part.encode()) > _NAME_BYTES for part in parts)
    except UnicodeEncodeError:  # bytes that are not UTF-8 arrive as lone surrogates
        return "encoding"
    return "length" if too_long else None
