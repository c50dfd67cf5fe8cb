"""Reading ELF files: many at once where that pays, and each content only once for each version of the audit.

The cache is a folder that the caller hands in; ``<rules>/<sha256>.json`` in it are the facts of one content.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from cattrs import BaseValidationError, Converter

from sampan.audit import elf, workers
from sampan.audit.facts import Damaged, ElfFacts
from sampan.audit.families import READERS
from sampan.errors import BadInputError

Facts = ElfFacts | Damaged
_WORTH_PROCESSES = 24 << 20  # bytes: below it starting them costs more than it saves
_WORTH_KEEPING = 1 << 14  # bytes: smaller files are read as fast as their facts
_PIECE = 1 << 20


def read_all(
    paths: Sequence[str], cache_folder: Path | None, tick: Callable[[str], None], processes: int | None = None
) -> dict[str, Facts]:
    """The facts of every ELF file among ``paths``, in their order. Raises BadInputError (unreadable).

    ``processes``: None means one a CPU. ``tick`` is told each path that is done.
    """
    found = {path: size for path in paths if (size := _elf_size(path)) is not None}
    one = partial(_cached, folder=_folder(cache_folder))
    count = processes if processes is not None else len(os.sched_getaffinity(0))
    if count < 2 or len(found) < 2 or sum(found.values()) < _WORTH_PROCESSES:
        facts = {}
        for path in found:
            facts[path] = _refusing(path, one)
            tick(path)
        return facts
    largest_first = sorted(found, key=lambda path: -found[path])
    read = dict(_in_processes(largest_first, one, count, tick))
    return {path: read[path] for path in found}


def read_one(path: str) -> Facts | None:
    """A file that serves others: its own facts without the readers' part; None where it is not ELF."""
    return _refusing(path, _plain) if _elf_size(path) is not None else None


def _plain(path: str) -> Facts:
    return elf.read(Path(path))


def _elf_size(path: str) -> int | None:
    """Bytes of an ELF file, None of any other. Raises BadInputError."""
    try:
        return os.stat(path).st_size if elf.is_elf(Path(path)) else None  # noqa: PTH116
    except OSError as error:
        raise BadInputError("file.unreadable", path=path, detail=error.strerror) from error


def _refusing(path: str, read: Callable[[str], Facts]) -> Facts:
    try:
        return read(path)
    except OSError as error:
        raise BadInputError("file.unreadable", path=path, detail=error.strerror) from error


def _in_processes(
    paths: Sequence[str], one: Callable[[str], Facts], count: int, tick: Callable[[str], None]
) -> Iterator[tuple[str, Facts]]:
    """Each file in a worker. Where a file kills its worker, that file is damaged and the others are read again."""
    left = dict.fromkeys(paths)
    with workers.pool(count) as pool:
        try:
            with workers.starting():
                jobs = {pool.submit(one, path): path for path in paths}
            for job in as_completed(jobs):
                path = jobs[job]
                yield path, _refusing(path, lambda _, job=job: job.result())  # type: ignore[misc]
                del left[path]
                tick(path)
        except BrokenProcessPool:
            pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for path in left:
        yield path, _alone(path, one)
        tick(path)


def _alone(path: str, one: Callable[[str], Facts]) -> Facts:
    with workers.pool(1) as pool:
        with workers.starting():
            job = pool.submit(one, path)
        try:
            return _refusing(path, lambda _: job.result())
        except BrokenProcessPool:
            return Damaged("reading it ended the reader")


def _cached(path: str, folder: Path | None) -> Facts:
    """The facts from the cache, else from the file."""
    if folder is None or os.stat(path).st_size < _WORTH_KEEPING:  # noqa: PTH116
        return elf.read(Path(path), READERS)
    kept = folder / f"{_digest(path)}.json"
    facts = _load(kept)
    if facts is None:
        facts = elf.read(Path(path), READERS)
        _keep(kept, facts)
    return facts


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with Path(path).open("rb", buffering=0) as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _load(kept: Path) -> Facts | None:
    """None where there is nothing, or nothing usable: the cache may be lost or cut at any time."""
    with suppress(OSError, ValueError, TypeError, KeyError, BaseValidationError):
        data = json.loads(kept.read_bytes())
        if data.pop("damaged"):
            return _converter().structure(data, Damaged)
        return _converter().structure(data, ElfFacts)
    return None


def _keep(kept: Path, facts: Facts) -> None:
    """Whole or not at all. A disk that refuses costs the next run its time, not this one its answer."""
    data: dict[str, Any] = {"damaged": isinstance(facts, Damaged), **_converter().unstructure(facts)}
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=kept.parent, prefix=".")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(data, stream, default=sorted)  # sets of names
            Path(name).replace(kept)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


@cache
def _converter() -> Converter:
    return Converter()


def _folder(cache_folder: Path | None) -> Path | None:
    if cache_folder is None:
        return None
    folder = cache_folder / _version()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    return None


@cache
def _version() -> str:
    """The audit's own sources and data: whatever could change the facts of a content."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    data = here.parent / "data"
    for path in sorted((*here.rglob("*.py"), *data.glob("*.toml"), *data.glob("isa/**/*.toml"))):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(here.parent)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]
