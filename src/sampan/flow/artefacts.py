"""The numbered files of the work folder: one artefact a stage, so that each stage also runs alone from files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sampan.disk import filesystem_errors
from sampan.edge.files import write_atomically
from sampan.errors import BadInputError, UsageError
from sampan.spec import codec
from sampan.spec.artefacts import BundleFolder

T = TypeVar("T")

#: stage -> file name in the work folder; the number is the stage's place on the way
FILES = {
    "survey": "01-profile.json",
    "weights": "02-weights.json",
    "plan": "03-plan.json",
    "build": "04-engine.json",
    "runtime": "05-runtime.json",
    "wheelhouse": "06-wheelhouse.json",
    "bundle": "07-bundle.json",
    "audit": "08-audit.json",
    "rehearse": "09-rehearsal.json",
    "pack": "10-package.json",
}


@dataclass(frozen=True)
class WorkFolder:
    """One bundle's work folder, ``<out>/<name>-<release>.work``."""

    path: Path

    def file(self, stage: str) -> Path:
        """Where the artefact of ``stage`` stands."""
        return self.path / FILES[stage]

    @property
    def bundles(self) -> Path:
        """Where the bundle's folder stands; its artefact names it relative to the work folder, which may move."""
        return self.path / "bundle"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out while the block runs. Raises UsageError where one is at work here."""
        with filesystem_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._lock(handle)
            yield
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError("work.busy", path=str(self.path)) from error

    def forget_after(self, stage: str) -> None:
        """Remove the artefacts of an earlier run from the stages behind ``stage``. Raises FilesystemError."""
        order = list(FILES)
        with filesystem_errors(self.path):
            for later in order[order.index(stage) + 1 :]:
                self.file(later).unlink(missing_ok=True)

    def save(self, stage: str, value: Any) -> Path:
        """Write the artefact whole or not at all. Raises FilesystemError."""
        path = self.file(stage)
        if isinstance(value, BundleFolder):
            value = replace(value, path=os.path.relpath(value.path, self.path))
        write_atomically(path, codec.to_json(value).encode())
        return path

    def load(self, stage: str, kind: type[T]) -> T:
        """Read the artefact of ``stage``. Raises BadInputError."""
        if not self.file("plan").is_file():
            raise BadInputError("work.none", path=str(self.path))
        return codec.load(kind, self.file(stage))

    def bundle(self) -> Path:
        """The assembled bundle's folder, wherever the work folder is now. Raises BadInputError."""
        return self.path / self.load("bundle", BundleFolder).path
