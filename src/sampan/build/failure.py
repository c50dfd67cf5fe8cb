"""From the output of a failed build to an error that says what to do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from sampan.errors import BuildError, FilesystemError, SampanError
from sampan.spec.ports import Completed

_NO_SPACE = re.compile(r"no space left on device|\bNoSpaceLeft\b|\bDiskQuota\b|disk quota exceeded", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"^Killed\b|\bsignal 9\b|\bSIGKILL\b|out of memory|\bOutOfMemory\b|std::bad_alloc|cannot allocate memory",
    re.IGNORECASE | re.MULTILINE,
)
_ERROR_LINE = re.compile(
    r"(: (fatal )?error: |^error: |^\S*ld\S*: error|undefined symbol|^CMake Error|^ninja: error)"
)
_REASON_LINES = 3
_LINES = 3  # the first errors; what follows is mostly their echo
_KILLED = (-9, 137)


def explain(done: Completed, *, step: str, log: Path, tree: Path) -> SampanError:
    """The error for a build step that ended with a code other than 0. ``step`` is ``configure`` or a variant."""
    if _NO_SPACE.search(done.output):
        return FilesystemError("disk.full", path=str(tree), free_mib=shutil.disk_usage(tree).free >> 20)
    if done.returncode in _KILLED or _NO_MEMORY.search(done.output):
        return BuildError("build.killed", step=step, log=str(log))
    detail = "\n".join(first_errors(done.output))
    return BuildError("build.failed", step=step, detail=detail, log=str(log), tree=str(tree))


def first_errors(output: str) -> list[str]:
    """The first lines that name an error; the last lines of all where none does."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = [_with_reason(lines, index) for index, line in enumerate(lines) if _ERROR_LINE.search(line)]
    return found[:_LINES] or lines[-_LINES:] or ["(no output)"]


def _with_reason(lines: list[str], index: int) -> str:
    """CMake puts the reason below its ``CMake Error at file:line (message):``."""
    line = lines[index]
    if line.startswith("CMake Error") and line.endswith(":"):
        return " ".join(lines[index : index + 1 + _REASON_LINES])
    return line
