"""Writing files from the workshop: whole or not at all, with errors that say what to do."""

from __future__ import annotations

from pathlib import Path

from sampan import disk


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write beside the target, sync, then rename. Raises FilesystemError; the old file stays on failure."""
    with disk.filesystem_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write(path, data, mode)
