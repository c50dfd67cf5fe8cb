"""The user's own texts: one a line, or JSON Lines with a ``text`` in each."""

from __future__ import annotations

import json
from pathlib import Path

from sampan.errors import BadInputError

FEWEST, MOST = 20, 5000  # below, ten neighbours say nothing; above, the table of all pairs outgrows memory
_LARGEST_FILE = 64 << 20  # bytes
_LONGEST = 8000  # characters


def read_texts(path: Path) -> tuple[str, ...]:
    """The texts of the file, each once, blank lines left out.

    Raises BadInputError: ``gate.texts`` for what cannot be read as such, ``gate.texts_count`` for too few or many.
    """
    found = dict.fromkeys(text for number, line in _lines(path) if (text := _text(path, number, line)))
    if not FEWEST <= len(found) <= MOST:
        raise BadInputError("gate.texts_count", path=str(path), count=len(found), least=FEWEST, most=MOST)
    return tuple(found)


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise BadInputError("gate.texts", path=str(path), line=1, detail=f"> {_LARGEST_FILE >> 20} MiB")
        raw = path.read_bytes()
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror or str(error)) from error
    try:
        content = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInputError("gate.texts", path=str(path), line=line, detail=f"UTF-8: {error.reason}") from error
    return [(number, line.strip()) for number, line in enumerate(content.split("\n"), 1) if line.strip()]


def _text(path: Path, number: int, line: str) -> str:
    text = line
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInputError("gate.texts", path=str(path), line=number, detail=str(error)[:80]) from error
        found = entry.get("text") if isinstance(entry, dict) else entry
        if not isinstance(found, str):
            raise BadInputError("gate.texts", path=str(path), line=number, detail="text?")
        text = found.strip()
    if len(text) > _LONGEST:
        raise BadInputError("gate.texts", path=str(path), line=number, detail=f"{len(text)} > {_LONGEST}")
    return text
