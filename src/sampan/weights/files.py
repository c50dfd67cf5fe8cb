"""Reading the small files of a model folder, with limits: a stranger's folder must cost neither memory nor time."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

from sampan.errors import BadInputError
from sampan.i18n import text

_LFS_START = b"version https://git-lfs.github.com/spec/"
_JSON_LIMIT = 128 << 20  # bytes; the largest known tokenizer.json has 33 MB


def refuse_lfs_pointer(path: Path) -> None:
    """Raise BadInputError where the file is the stand-in that Git leaves for a file it did not fetch."""
    if path.stat().st_size > 1024:  # the pointer format allows at most this
        return
    start = path.read_bytes()
    if start.startswith(_LFS_START):
        size = next((line[5:].strip() for line in start.splitlines() if line.startswith(b"size ")), b"?")
        raise BadInputError("weights.lfs", path=str(path), size=size.decode("ascii", "replace"))


def read_text(path: Path) -> str:
    """A UTF-8 text of the folder. Raises BadInputError."""
    try:
        if path.stat().st_size > _JSON_LIMIT:
            raise BadInputError("weights.config", path=str(path), detail=text("weights.damage.too_large"))
        refuse_lfs_pointer(path)
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError("file.unreadable", path=str(path), detail=str(error)) from error


def read_json(path: Path) -> object:
    """A JSON file of the folder. Raises BadInputError."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInputError("weights.config", path=str(path), detail=str(error)) from error


def read_object(path: Path) -> dict[str, object]:
    """A JSON file whose top is an object. Raises BadInputError."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise BadInputError("weights.config", path=str(path), detail=text("weights.damage.not_object"))
    return data


def inside(folder: Path, name: str) -> Path:
    """``folder/name``, a name that a file of the folder gave: relative, no ``..``. Raises BadInputError."""
    parts = PurePosixPath(name).parts
    if not name or "\0" in name or name.startswith("/") or ".." in parts:
        raise BadInputError("weights.config", path=str(folder), detail=text("weights.damage.outside", name=name))
    return folder.joinpath(*parts)


def integer(data: dict[str, object], key: str, path: Path, *, largest: int = 1 << 24) -> int:
    """A positive whole number below ``largest``. Raises BadInputError."""
    value = data.get(key)
    if type(value) is not int or not 0 < value <= largest:
        raise BadInputError("weights.config", path=str(path), detail=f"{key} = {value!r}")
    return value


def member(data: dict[str, object], key: str) -> dict[str, object]:
    """The object under ``key``, empty where there is none."""
    value = data.get(key)
    return value if isinstance(value, dict) else {}
