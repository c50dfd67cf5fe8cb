"""The keys that a machine trusts: one PEM file each in one folder, readable by all, writable by its owner."""

from __future__ import annotations

import stat
from pathlib import Path

from sampan import disk
from sampan.errors import BadInputError, FilesystemError
from sampan.trust import keys
from sampan.trust.keys import PublicKey

SYSTEM = Path("/etc/sampan/trusted-keys")
_SUFFIX = ".pem"
_OTHERS_WRITE = 0o022


def load(folder: Path) -> tuple[PublicKey, ...]:
    """Every key of the folder, by id; none where there is no folder.

    Raises FilesystemError where others may write there (whoever may add a key may sign), BadInputError for a file
    that is no key: a damaged one must not silently become no trust.
    """
    if not folder.is_dir():
        return ()
    with disk.filesystem_errors(folder):
        files = sorted(path for path in folder.iterdir() if path.name.endswith(_SUFFIX))
        for path in (folder, *files):
            if stat.S_IMODE(path.stat().st_mode) & _OTHERS_WRITE:
                raise FilesystemError("trust.writable", path=str(path))
        found = {key.id: key for key in (read(path) for path in files)}
    return tuple(found[identity] for identity in sorted(found))


def read(path: Path) -> PublicKey:
    """One public key's file. Raises BadInputError."""
    try:
        return keys.parse(path.read_bytes(), where=str(path))
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error


def add(folder: Path, key: PublicKey) -> Path:
    """Trust a key from now on; its file. Raises FilesystemError."""
    with disk.filesystem_errors(folder):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        path = folder / f"{key.id}{_SUFFIX}"
        disk.write(path, key.pem.encode())
    return path


def remove(folder: Path, identity: str) -> PublicKey:
    """Trust a key no more. ``identity``: the beginning of its id, at least 8 characters. Raises BadInputError."""
    found = [key for key in load(folder) if len(identity) >= 8 and key.id.startswith(identity)]
    if len(found) != 1:
        raise BadInputError("trust.no-such-key", key=identity, path=str(folder), count=len(found))
    with disk.filesystem_errors(folder):
        for path in folder.glob(f"*{_SUFFIX}"):
            if read(path).id == found[0].id:
                path.unlink()
        disk.sync_folder(folder)
    return found[0]
