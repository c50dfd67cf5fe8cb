"""Writing on the target: explicit modes whatever the umask, all or nothing, safe from a power cut."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sampan import disk
from sampan.disk import existing, sweep, sync_folder, write

__all__ = ["existing", "filesystem_errors", "make_folders", "point", "remove_empty", "sweep", "sync_folder", "write"]

FOLDER_MODE, PROGRAM_MODE, FILE_MODE = 0o755, 0o755, 0o644

#: the operating system's refusals, with what to do about them on a target
filesystem_errors = partial(
    disk.filesystem_errors,
    full="install.disk-full",
    refused="install.disk",
    failed="install.disk",
    absent="install.disk",
)


def make_folders(path: Path) -> tuple[Path, ...]:
    """Make ``path`` and what is missing above it, each 0755; give those made, outermost first. Raises OSError."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for folder in reversed(missing):
        folder.mkdir()
        folder.chmod(FOLDER_MODE)
        sync_folder(folder.parent)
    return tuple(reversed(missing))


def point(link: Path, target: str) -> None:
    """Let the symbolic link ``link`` name ``target``, in one step. Raises OSError."""
    temporary = link.with_name(f".{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
    sync_folder(link.parent)


def remove_empty(folders: tuple[Path, ...]) -> None:
    """Remove those of ``folders`` (outermost first) that are empty by now. Raises OSError."""
    for folder in reversed(folders):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
