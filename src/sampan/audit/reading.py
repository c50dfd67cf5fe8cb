"""Reading ELF files: many at once where that pays, and each content only once for each version of the audit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

from sampan.audit import elf, facts_cache, workers
from sampan.audit.facts import Damaged
from sampan.audit.facts_cache import Facts
from sampan.audit.families import READERS
from sampan.errors import BadInputError

_WORTH_PROCESSES = 24 << 20  # bytes: below it starting them costs more than it saves
_WORTH_KEEPING = 1 << 14  # bytes: smaller files are read as fast as their facts


def read_all(
    paths: Sequence[str], cache_folder: Path | None, tick: Callable[[str], None], processes: int | None = None
) -> dict[str, Facts]:
    """The facts of every ELF file among ``paths``, in their order. Raises BadInputError (unreadable).

    ``cache_folder``: see ``facts_cache``; what is old in it is removed. ``processes``: None means one a CPU. ``tick``
    is told each path that is done.
    """
    found = {path: size for path in paths if (size := _elf_size(path)) is not None}
    one = partial(_cached, folder=facts_cache.folder(cache_folder))
    count = processes if processes is not None else len(os.sched_getaffinity(0))
    if count < 2 or len(found) < 2 or sum(found.values()) < _WORTH_PROCESSES:
        read = dict(_one_by_one(found, one, tick))
    else:
        read = dict(_in_processes(sorted(found, key=lambda path: -found[path]), one, count, tick))  # largest first
    if cache_folder is not None:
        facts_cache.prune(cache_folder)
    return {path: read[path] for path in found}


def _one_by_one(
    paths: Iterable[str], one: Callable[[str], Facts], tick: Callable[[str], None]
) -> Iterator[tuple[str, Facts]]:
    for path in paths:
        yield path, _refusing(path, one)
        tick(path)


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
    return facts_cache.taken(folder, path, lambda: elf.read(Path(path), READERS))
