"""The configuration of each release, kept beside it: the record, and the unit file as it was written for it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from sampan.install import disk
from sampan.install.model import CONFIG, RECORD, Installed, unit_name
from sampan.spec import codec


def folder(prefix: Path, release: int) -> Path:
    """Where the configuration of a release is."""
    return prefix / CONFIG / str(release)


def keep(prefix: Path, record: Installed, unit: str | None) -> None:
    """Put down what goes with ``record.release``. Raises OSError."""
    place = folder(prefix, record.release)
    disk.make_folders(place)
    disk.write(place / RECORD, codec.to_json(record).encode())
    if unit is not None:
        disk.write(place / unit_name(record.name), unit.encode())


def record_of(prefix: Path, release: int) -> Installed | None:
    """The record as it was when ``release`` was in force; None where it never was. Raises BadInputError."""
    path = folder(prefix, release) / RECORD
    return replace(codec.load(Installed, path), prefix=str(prefix)) if path.is_file() else None


def unit_of(prefix: Path, release: int, name: str) -> str | None:
    """The unit file as it was written for ``release``; None where there was none."""
    path = folder(prefix, release) / unit_name(name)
    return path.read_text(encoding="utf-8") if path.is_file() else None


def numbers(prefix: Path) -> tuple[int, ...]:
    """The releases of which there is a configuration."""
    return tuple(int(path.name) for path in (prefix / CONFIG).glob("*") if path.name.isdecimal())


def forget(prefix: Path, release: int) -> None:
    """Remove it; the folder above too where it is empty then. Raises OSError."""
    shutil.rmtree(folder(prefix, release), ignore_errors=True)
    disk.remove_empty((prefix / CONFIG,))
