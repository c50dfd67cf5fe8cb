"""Copying parts into the bundle: content only, modes said outright, links resolved.

Never hard links: a bundle is chmod-ed, dated and served from, and the store's inode must stay as it is. The kernel
shares blocks by itself (``copy_file_range``) where the file system can.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sampan.bundle import layout
from sampan.errors import BadInputError
from sampan.spec.ports import Task

_STEP_BYTES = 32 << 20  # per call, so that progress moves


@dataclass(frozen=True)
class Copy:
    """One file to take: ``place`` is its path in the bundle."""

    source: Path
    place: str
    mode: int
    size: int


def one(source: Path, place: str, mode: int | None = None) -> Copy:
    """A single file; its mode follows its own executable bit unless said. Raises BadInputError."""
    try:
        facts = source.stat()
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(source)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(source), detail=error.strerror) from error
    if not stat.S_ISREG(facts.st_mode):
        raise BadInputError("bundle.kind", path=str(source))
    fault = layout.fault_of_name(place)
    if fault:
        raise BadInputError("bundle.file-name", path=repr(place), fault=fault)
    chosen = mode or (layout.PROGRAM_MODE if facts.st_mode & 0o111 else layout.FILE_MODE)
    return Copy(source, place, chosen, facts.st_size)


def tree(root: Path, place: str) -> Iterator[Copy]:
    """Every file of a folder. A link inside it to one of its files is taken as that file; empty folders are not
    taken. Raises BadInputError for other links and for devices, sockets and pipes.
    """
    if not root.is_dir():
        raise BadInputError("file.missing", path=str(root))
    real_root = root.resolve()
    try:
        listing = layout.entries(root)
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(error.filename), detail=error.strerror) from error
    for entry in listing:
        path = root / entry.path
        if entry.kind == "folder":
            continue
        if entry.kind == "special" or (entry.kind == "link" and not _inside(path, real_root)):
            raise BadInputError("bundle.kind", path=str(path))
        yield one(path, f"{place}/{entry.path}")


def _inside(link: Path, root: Path) -> bool:
    target = link.resolve()
    return target.is_relative_to(root) and target.is_file()


def copy(item: Copy, folder: Path, task: Task) -> None:
    """Write one file under ``folder``, which must not have it yet. Raises OSError, BadInputError."""
    destination = folder / item.place
    destination.parent.mkdir(parents=True, exist_ok=True)
    with _open(item.source) as source, destination.open("xb") as sink:
        for done in _transfer(source.fileno(), sink.fileno()):
            task.advance(done)
        os.fchmod(sink.fileno(), item.mode)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error


def _transfer(source: int, sink: int) -> Iterator[int]:
    while True:
        try:
            done = os.copy_file_range(source, sink, _STEP_BYTES)
        except OSError:  # another file system, an old kernel, a pseudo file: the plain way goes on where it stopped
            yield _plain(source, sink)
            return
        if not done:
            return
        yield done


def _plain(source: int, sink: int) -> int:
    start = os.lseek(sink, 0, os.SEEK_CUR)
    with os.fdopen(os.dup(source), "rb") as reader, os.fdopen(os.dup(sink), "wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
    return os.lseek(sink, 0, os.SEEK_CUR) - start
