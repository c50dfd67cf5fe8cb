"""Our changes to the engine's source: unified diffs in ``data/engine``, applied strictly or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath

from sampan.errors import BuildError

SUFFIX = ".patch"
NOTICE = "NOTICE-llama.cpp"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(frozen=True)
class Hunk:
    """Lines with their sign (space, - or +); ``first`` is the old file's line number that they begin at, from 1."""

    first: int
    old_count: int
    new_count: int
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        """What must be there."""
        return [line[1:] for line in self.lines if line[0] in " -"]

    @property
    def new(self) -> list[str]:
        """What is put there."""
        return [line[1:] for line in self.lines if line[0] in " +"]


def texts() -> dict[str, str]:
    """Every patch by its name, in the order in which they are applied."""
    folder = resources.files("sampan") / "data" / "engine"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(SUFFIX))
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def notice(changes: Mapping[str, str]) -> str:
    """What must travel with a changed engine: that it is changed, and how. Empty where nothing is changed."""
    if not changes:
        return ""
    words = (resources.files("sampan") / "data" / "engine" / NOTICE).read_text(encoding="utf-8")
    return "\n".join([words, *(f"=== {name} ===\n\n{text}" for name, text in changes.items())])


def apply(name: str, text: str, root: Path) -> None:
    """Change the files below ``root``: each line where the patch says, without any fuzz, or nothing.

    Raises BuildError ``build.patch`` that names the file and line.
    """
    changed = {path: _changed(name, path, root, hunks) for path, hunks in parse(name, text)}
    if not changed:
        raise BuildError("build.patch", patch=name, file="-", line=0)
    for path, contents in changed.items():
        (root / path).write_text(contents, encoding="utf-8", newline="")


def parse(name: str, text: str) -> Iterator[tuple[str, list[Hunk]]]:
    """Each file's path and hunks. Raises BuildError ``build.patch`` where the diff itself is damaged."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if not lines[at].startswith("--- "):
            at += 1  # words before the diff
            continue
        head = "".join(lines[at + 1 : at + 2])
        path = head.removeprefix("+++ b/")
        at, hunks = _hunks(name, path, lines, at + 2)
        if not hunks or path == head or ".." in PurePosixPath(path).parts:
            raise BuildError("build.patch", patch=name, file=path or "-", line=0)
        yield path, hunks


def _hunks(name: str, path: str, lines: list[str], at: int) -> tuple[int, list[Hunk]]:
    found: list[Hunk] = []
    while at < len(lines) and (head := _HUNK.match(lines[at])):
        end = at + 1
        while end < len(lines) and lines[end][:1] in (" ", "-", "+") and not lines[end].startswith("--- "):
            end += 1
        hunk = Hunk(int(head[1]), int(head[2] or 1), int(head[3] or 1), tuple(lines[at + 1 : end]))
        if (len(hunk.old), len(hunk.new)) != (hunk.old_count, hunk.new_count):
            raise BuildError("build.patch", patch=name, file=path, line=hunk.first)
        found.append(hunk)
        at = end
    return at, found


def _changed(name: str, path: str, root: Path, hunks: list[Hunk]) -> str:
    try:
        lines = (root / path).read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError("build.patch", patch=name, file=path, line=0) from error
    for hunk in reversed(hunks):
        start = hunk.first - 1
        if lines[start : start + hunk.old_count] != hunk.old:
            raise BuildError("build.patch", patch=name, file=path, line=hunk.first)
        lines[start : start + hunk.old_count] = hunk.new
    return "\n".join(lines)
