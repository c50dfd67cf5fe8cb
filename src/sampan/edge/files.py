"""Writing files from the workshop: whole or not at all, with errors that say what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

from sampan import disk


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write beside the target, sync, then rename. Raises FilesystemError; the old file stays on failure."""
    with disk.filesystem_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write(path, data, mode)


def copy_atomically(source: Path, target: Path, mode: int = 0o644) -> None:
    """The same for a file of any size. Raises FilesystemError."""
    with disk.filesystem_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with disk.new_file(target, mode) as stream, source.open("rb") as data:
            shutil.copyfileobj(data, stream, 1 << 20)
