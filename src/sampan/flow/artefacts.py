"""The numbered files of the work folder: one artefact a stage, so that each stage also runs alone from files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sampan.edge.files import write_atomically
from sampan.spec import codec

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

    def save(self, stage: str, value: Any) -> Path:
        """Write the artefact whole or not at all. Raises FilesystemError."""
        path = self.file(stage)
        write_atomically(path, codec.to_json(value).encode())
        return path

    def load(self, stage: str, kind: type[T]) -> T:
        """Read the artefact of ``stage``. Raises BadInputError."""
        return codec.load(kind, self.file(stage))
