"""What ``data/pins.toml`` says of the engine: where its source is, how it is configured, which licences travel."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from sampan.build import patches
from sampan.errors import IncompatibleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Licence:
    """A text that must travel. ``of``: source or compiler; ``start``: its first line, None for the whole file."""

    name: str
    of: str
    path: str
    start: str | None = None


@dataclass(frozen=True)
class Architecture:
    """``target``: what ``zig cc -target`` takes; ``floor``: its ``-mcpu`` for all but the variant's kernels."""

    name: str
    target: str
    floor: str


@dataclass(frozen=True)
class EnginePin:
    """One engine: a hash-pinned archive of a package index, and how it is built."""

    name: str
    version: str
    commit: str
    requirement: str
    file_name: str
    sha256: str
    top: str
    omit: tuple[str, ...]
    target: str
    max_bytes: int
    definitions: tuple[str, ...]
    architectures: dict[str, Architecture]
    licences: tuple[Licence, ...]
    changes: dict[str, str] = field(default_factory=dict)  # our patches by name, as text

    def architecture(self, arch: str) -> Architecture:
        """Raises IncompatibleError ``build.architecture`` where the engine is not built for ``arch``."""
        if arch not in self.architectures:
            raise IncompatibleError("build.architecture", arch=arch, known=", ".join(sorted(self.architectures)))
        return self.architectures[arch]


@cache
def engine_pin() -> EnginePin:
    """Read the data file, once."""
    text = (resources.files("sampan") / "data" / "pins.toml").read_text(encoding="utf-8")
    row = tomllib.loads(text)["engine"]
    return EnginePin(
        name=row["name"],
        version=row["version"],
        commit=row["commit"],
        requirement=row["requirement"],
        file_name=row["file_name"],
        sha256=row["sha256"],
        top=row["top"],
        omit=tuple(row["omit"]),
        target=row["target"],
        max_bytes=row["max_bytes"],
        definitions=tuple(row["definitions"]),
        architectures={name: Architecture(name, **fields) for name, fields in row["architectures"].items()},
        licences=tuple(Licence(**fields) for fields in row["licence"]),
        changes=patches.texts(),
    )
