"""What one wheel says of itself, beside what it holds."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from sampan.audit.archives.contents import Contents

_MAX_RECORD = 64 << 20  # bytes; 200,000 members have less
_UNHASHED = ("RECORD", "RECORD.jws", "RECORD.p7s")


@dataclass(frozen=True)
class RecordFaults:
    """RECORD against the contents: names. ``absent``: there is no RECORD that can be read; ``reason`` says why."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    unhashed: tuple[str, ...] = ()
    absent: str = ""


@dataclass(frozen=True)
class Wheel:
    """``platforms`` and ``pythons`` (interpreter, abi) of its name; empty where the name is no wheel's.

    ``scripts``: the first line of each script that is installed as a command.
    """

    file: str
    platforms: tuple[str, ...]
    pythons: tuple[tuple[str, str], ...]
    record: RecordFaults
    scripts: Mapping[str, str]


def read(file: str, contents: Contents) -> Wheel:
    """Put together what the archive held. Raises OSError."""
    try:
        tags = parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        tags = frozenset()
    scripts = {name: head.partition(b"\n")[0] for name, head in contents.heads.items()}
    return Wheel(
        file=file,
        platforms=tuple(sorted({tag.platform for tag in tags})),
        pythons=tuple(sorted({(tag.interpreter, tag.abi) for tag in tags})),
        record=_record(contents),
        scripts={name: line.decode("utf-8", "replace").strip() for name, line in scripts.items()},
    )


def _record(contents: Contents) -> RecordFaults:
    records = [name for name in contents.files if name.endswith(".dist-info/RECORD") and name.count("/") == 1]
    if len(records) != 1:
        return RecordFaults(absent=f"{len(records)} files named RECORD")
    path = Path(contents.folder) / records[0]
    if path.stat().st_size > _MAX_RECORD:
        return RecordFaults(absent="RECORD is larger than any list of files")
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        return RecordFaults(absent=str(error))
    return _compare({row[0]: row[1] if len(row) > 1 else "" for row in rows if row}, contents, records[0])


def _compare(listed: Mapping[str, str], contents: Contents, record: str) -> RecordFaults:
    folder = record.rpartition("/")[0]
    exempt = {f"{folder}/{name}" for name in _UNHASHED}
    present = contents.digests
    return RecordFaults(
        missing=tuple(sorted(name for name in listed if name not in present and not name.endswith("/"))),
        changed=tuple(
            sorted(
                name
                for name, (digest, _) in present.items()
                if listed.get(name) and name not in exempt and not _same(listed[name], digest)
            )
        ),
        extra=tuple(sorted(name for name in present if name not in listed and name not in exempt)),
        unhashed=tuple(sorted(name for name in present if listed.get(name) == "" and name not in exempt)),
    )


def _same(listed: str, digest: str) -> bool:
    """Other algorithms than SHA-256 are not compared: nobody writes them."""
    algorithm, _, value = listed.partition("=")
    return algorithm != "sha256" or value.rstrip("=") == digest
