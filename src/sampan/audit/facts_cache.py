"""What was read of each content, for each version of the audit.

The cache is a folder that the caller hands in; ``<rules>/<sha256>.json`` in it are the facts of one content. It is
kept small: what was not used for long goes, and of the rest the oldest, whatever version of the audit wrote it. Any
number of runs may use it at once: each file is whole or absent, and one that another run has removed is read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from cattrs import BaseValidationError, Converter

from sampan.audit.facts import Damaged, ElfFacts

Facts: TypeAlias = ElfFacts | Damaged
MOST_BYTES = 512 << 20
MOST_DAYS = 90  # since it was last used
_PIECE = 1 << 20
_TEMPORARY, _ABANDONED = ".", 3600  # seconds after which nobody is still writing a file


def folder(cache_folder: Path | None) -> Path | None:
    """The place of this version's facts, made where it is not there; None where it cannot be."""
    if cache_folder is None:
        return None
    place = cache_folder / _version()
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        return place
    return None


def taken(place: Path, path: str, read: Callable[[], Facts]) -> Facts:
    """The facts of the content of ``path`` from ``place``, else what ``read`` gives, kept. Raises OSError (path)."""
    kept = place / f"{_digest(path)}.json"
    facts = _load(kept)
    if facts is None:
        facts = read()
        _keep(kept, facts)
    return facts


def prune(cache_folder: Path) -> None:
    """Remove what is too old, then the longest unused until the rest fits. A disk that refuses is left alone."""
    now, total = time.time(), 0
    for used, size, path in sorted(_entries(cache_folder), reverse=True):
        total += size
        seconds = _ABANDONED if path.name.startswith(_TEMPORARY) else MOST_DAYS * 86400
        if total > MOST_BYTES or now - used > seconds:
            with suppress(OSError):
                path.unlink()
    for place in cache_folder.glob("*/"):
        if place.name != _version():
            with suppress(OSError):  # not empty: another version of the audit is still in use
                place.rmdir()


def _entries(cache_folder: Path) -> Iterator[tuple[float, int, Path]]:
    """(last used, bytes, path) of everything that ``taken`` has ever put there."""
    for pattern in ("*/*.json", f"*/{_TEMPORARY}*"):
        for path in cache_folder.glob(pattern):
            with suppress(OSError):  # gone meanwhile
                known = path.stat()
                yield known.st_mtime, known.st_size, path


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
        with suppress(OSError):
            os.utime(kept)  # what is used stays
        if data.pop("damaged"):
            return _converter().structure(data, Damaged)
        return _converter().structure(data, ElfFacts)
    return None


def _keep(kept: Path, facts: Facts) -> None:
    """Whole or not at all. A disk that refuses costs the next run its time, not this one its answer."""
    data: dict[str, Any] = {"damaged": isinstance(facts, Damaged), **_converter().unstructure(facts)}
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=kept.parent, prefix=_TEMPORARY)
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
