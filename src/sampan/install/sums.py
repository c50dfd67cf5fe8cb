"""SHA256SUMS: the list of every file of a bundle, as coreutils writes it."""

from __future__ import annotations

import re
from pathlib import Path

from sampan.errors import BadInputError, VerificationError

NAME = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.dsse"  # over the list, so not in it
_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^\x00-\x1f\x7f\\]+)")


def parse(text: str, *, where: str) -> dict[str, str]:
    """Relative path -> digest. Raises BadInputError on a line that is none, a path that leaves the folder, or a
    path listed twice.
    """
    listed: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or _unsafe(match[2]) or match[2] in (*listed, NAME, SIGNATURE):
            raise BadInputError("install.sums", path=where, line=number)
        listed[match[2]] = match[1]
    if not listed:
        raise BadInputError("install.sums", path=where, line=1)
    return listed


def _unsafe(path: str) -> bool:
    return any(part in ("", ".", "..") for part in path.split("/"))


def read(bundle: Path) -> dict[str, str]:
    """The list of ``bundle``. Raises BadInputError."""
    path = bundle / NAME
    try:
        return parse(path.read_text(encoding="utf-8"), where=str(path))
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError("file.unreadable", path=str(path), detail=str(error)) from error


def check_names(bundle: Path, listed: dict[str, str]) -> None:
    """Raise VerificationError where the folder holds a file that is not listed, a link or a device."""
    for path in sorted(bundle.rglob("*")):
        name = path.relative_to(bundle).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise VerificationError("install.odd-file", path=name)
        if path.is_file() and name not in (NAME, SIGNATURE) and name not in listed:
            raise VerificationError("install.extra-file", path=name)
