"""Unpacking one wheel into ``app/``: checked against its RECORD, safe paths, no scripts, RECORD written anew."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from fnmatch import fnmatch
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath

from installer.exceptions import InstallerError
from installer.sources import WheelFile

from sampan.errors import BadInputError
from sampan.spec.artefacts import Wheel
from sampan.wheelhouse.strip import strip

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DATA_SCHEMES = ("purelib", "platlib")  # of NAME.data/: the rest (scripts, headers, data) has no use on a target
Written = tuple[str, bytes]  # path below app/, content


@dataclass(frozen=True)
class Trim:
    """What stays behind; see ``data/wheelhouse.toml``."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    keep: dict[str, tuple[str, ...]]
    text: str

    def drops(self, path: str) -> bool:
        """Whether this path inside a wheel stays behind. Licences and metadata never do."""
        parts = PurePosixPath(path).parts
        if parts[0].endswith(".dist-info"):
            return False
        kept = self.keep.get("/".join(parts[:-1]))
        if kept is not None and parts[-1] not in kept:
            return True
        return any(part in self.folders for part in parts[:-1]) or any(fnmatch(parts[-1], x) for x in self.files)


@cache
def trim() -> Trim:
    """Read the data file, once."""
    text = (resources.files("sampan") / "data" / "wheelhouse.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    keep = {folder: tuple(names) for folder, names in data["keep"].items()}
    return Trim(tuple(data["files"]), tuple(data["folders"]), keep, text)


def unpack(path: Path, app: Path, sha256: str) -> Wheel:
    """Put one wheel's files below ``app``. Raises BadInputError ``wheelhouse.bad-wheel``."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_paths(archive, path.name)
            source = WheelFile(archive)
            source.validate_record(validate_contents=True)
            written = [write_file(app, place, data) for place, data in _contents(source)]
            record = f"{source.dist_info_dir}/RECORD"
            write_record(app, record, written)
            return _described(source, path.name, sha256)
    except (InstallerError, zipfile.BadZipFile, UnicodeDecodeError, KeyError, EOFError) as error:
        detail = str(error) or type(error).__name__
        raise BadInputError("wheelhouse.bad-wheel", path=str(path), detail=detail[:300]) from error


def _contents(source: WheelFile) -> Iterator[tuple[str, bytes]]:
    for (path, _, _), stream, _ in source.get_contents():
        place = _place(path, source)
        if place and place != f"{source.dist_info_dir}/RECORD" and not trim().drops(place):
            data = stream.read()
            yield place, strip(data) if ".so" in PurePosixPath(place).name else data


def _check_paths(archive: zipfile.ZipFile, wheel: str) -> None:
    """Raises BadInputError where a member could land outside its folder."""
    for member in archive.namelist():
        pure = PurePosixPath(member)
        if pure.is_absolute() or ".." in pure.parts or "\\" in member or not pure.parts:
            raise BadInputError("wheelhouse.unsafe-path", wheel=wheel, member=member)


def _place(path: str, source: WheelFile) -> str | None:
    """Where a member goes, relative to ``app``; None where it stays behind."""
    parts = PurePosixPath(path).parts
    if parts[0] != source.data_dir:
        return "/".join(parts)
    if len(parts) > 2 and parts[1] in _DATA_SCHEMES:
        return "/".join(parts[2:])
    return None


def write_file(app: Path, place: str, data: bytes) -> Written:
    """Write one file below ``app``. Raises BadInputError where two wheels bring the same path."""
    path = app / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise BadInputError("wheelhouse.twice", path=place)
    path.write_bytes(data)
    path.chmod(0o644)
    return place, data


def write_record(app: Path, record: str, written: list[Written]) -> None:
    """RECORD of what is really there, sorted, as the wheel specification wants it."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    for place, data in sorted(written):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow((place, f"sha256={digest}", len(data)))
    rows.writerow((record, "", ""))
    write_file(app, record, text.getvalue().encode())


def _described(source: WheelFile, file_name: str, sha256: str) -> Wheel:
    metadata = HeaderParser().parsestr(source.read_dist_info("METADATA"))
    name, version = metadata["Name"] or source.distribution, metadata["Version"] or source.version
    return Wheel(name, version, file_name, sha256, licence_of(metadata))


def licence_of(metadata: Message) -> str | None:
    """License-Expression (PEP 639), else the classifiers' last words, else a short License field."""
    expression: str | None = metadata["License-Expression"]
    if expression:
        return expression
    classifiers: list[str] = metadata.get_all("Classifier") or []
    named = [item.rpartition(" :: ")[2] for item in classifiers if item.startswith("License ::")]
    if named:
        return ", ".join(named)
    licence = (metadata["License"] or "").strip()
    return licence if licence and "\n" not in licence and len(licence) < 60 else None
