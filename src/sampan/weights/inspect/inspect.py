"""The door: whatever lies at a path becomes a ModelReport, or an error that says what it is instead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sampan.errors import BadInputError
from sampan.spec.model_report import ModelReport
from sampan.spec.ports import Progress, Store
from sampan.weights.describe import model_name
from sampan.weights.digest import remembered, sha256_of
from sampan.weights.inspect import folder_report, gguf_report, graph_report
from sampan.weights.inspect.locate import locate

HASH_BELOW = 64 << 20  # bytes; such a file is hashed in a tenth of a second


def inspect(path: Path, *, hash_all: bool, store: Store, progress: Progress, name: str | None = None) -> ModelReport:
    """Look at a model. Large files are hashed only with ``hash_all`` or where their digest is remembered.

    Raises BadInputError.
    """
    try:
        found = locate(path)
        title = name or model_name(found.path if found.kind == "gguf" else path.absolute())
        if found.kind == "gguf":
            report = gguf_report.report(found.path, title)
        elif found.kind == "folder":
            report = folder_report.report(found.path, title)
        else:
            report = graph_report.report(found, title)
        base = found.path if found.path.is_dir() else found.path.parent
        files = tuple(
            replace(file, sha256=_digest(base / file.path, file.size_bytes, hash_all, store, progress))
            for file in report.files
        )
    except OSError as error:
        detail = error.strerror or str(error)
        raise BadInputError("file.unreadable", path=str(error.filename or path), detail=detail) from error
    return replace(report, files=files)


def _digest(path: Path, size: int, hash_all: bool, store: Store, progress: Progress) -> str | None:
    if hash_all or size < HASH_BELOW:
        return sha256_of(path, store, progress)
    return remembered(path, store)
