"""SHA-256 of large files, with progress, remembered as long as the file stays the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.ports import Progress, Store, Task

_CHUNK = 4 << 20


def sha256_of(path: Path, store: Store, progress: Progress) -> str:
    """The file's digest; remembered under its real path, size, time of change and inode. Raises BadInputError."""
    real = path.resolve()
    try:
        state, key = real.stat(), _key(real)

        def make(folder: Path) -> None:
            with progress.task(text("weights.step.digest", file=path.name), state.st_size) as task:
                (folder / "sha256").write_text(_hash(real, task), encoding="ascii")

        return (store.get_or_make("digests", key, make) / "sha256").read_text(encoding="ascii")
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error


def remembered(path: Path, store: Store) -> str | None:
    """The digest of an earlier reading, None where the file was not read or changed since. Raises OSError."""
    found = store.find("digests", _key(path.resolve()))
    return (found / "sha256").read_text(encoding="ascii") if found else None


def _key(real: Path) -> dict[str, object]:
    state = real.stat()
    return {"path": str(real), "size": state.st_size, "mtime": state.st_mtime_ns, "inode": state.st_ino}


def _hash(path: Path, task: Task) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            task.advance(len(chunk))
    return digest.hexdigest()
