"""Files that are no ELF file and should be, or hold what is not judged: silence would look like a proof."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from sampan.audit.archives.contents import Contents
from sampan.audit.archives.unpack import is_archive, is_library
from sampan.errors import BadInputError
from sampan.spec.artefacts import Finding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LINKER_TEXT = re.compile(rb"/\* GNU ld script|^\s*(?:INPUT|GROUP|OUTPUT_FORMAT)\s*\(", re.MULTILINE)
_HEAD = 512


@dataclass(frozen=True)
class _Kind:
    name: str
    first: bytes
    foreign: bool
    holds: bool


def judge(files: Mapping[str, str], given: frozenset[str], bundle: str | None) -> Iterator[Finding]:
    """``file.not-elf`` and ``file.unopened`` for ``files``, of which none is ELF: the name to show by path.

    ``given``: those that the user named himself. What merely lies in a folder is judged by its name alone, and is a
    warning there: sources and test data hold such files. Raises BadInputError (unreadable).
    """
    for path, shown in files.items():
        library = is_library(path)
        if is_archive(path) or not (library or path in given):
            continue
        grave = path in given or _within(path, bundle)
        yield from _said(shown, _head(path), library=library, grave=grave)


def judge_members(contents: Contents, shown: str, *, grave: bool) -> Iterator[Finding]:
    """``file.not-elf`` for the members of an archive that are called libraries. ``grave``: they were meant to run."""
    for name, head in contents.no_elf.items():
        yield from _said(f"{shown}!{name}", head, library=True, grave=grave)


def _said(shown: str, head: bytes, *, library: bool, grave: bool) -> Iterator[Finding]:
    kind = next((one for one in _kinds() if head.startswith(one.first)), None)
    if kind is None and library and _LINKER_TEXT.search(head):
        return  # the linker reads it, nobody loads it
    if library or (kind and kind.foreign):
        found = kind.name if kind else "other data" if head else "empty"
        yield Finding("file.not-elf", "error" if grave else "warning", shown, (("found", found),))
    elif kind and kind.holds:
        yield Finding("file.unopened", "warning", shown, (("found", kind.name),))


def _within(path: str, bundle: str | None) -> bool:
    return bundle is not None and path.startswith(f"{bundle}/")


def _head(path: str) -> bytes:
    try:
        with Path(path).open("rb", buffering=0) as stream:
            return stream.read(_HEAD)
    except OSError as error:
        raise BadInputError("file.unreadable", path=path, detail=error.strerror) from error


@cache
def _kinds() -> tuple[_Kind, ...]:
    text = (resources.files("sampan") / "data" / "file_kinds.toml").read_text(encoding="utf-8")
    return tuple(
        _Kind(one["name"], bytes.fromhex(one["bytes"]), one.get("foreign", False), one.get("holds", False))
        for one in tomllib.loads(text)["kind"]
    )
