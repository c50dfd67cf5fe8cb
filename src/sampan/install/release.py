"""The release folder: the bundle's files, copied and hashed in one pass."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from sampan.errors import VerificationError
from sampan.install import sums
from sampan.install.disk import FILE_MODE, FOLDER_MODE, PROGRAM_MODE, sync_folder
from sampan.spec.ports import Progress

_BLOCK = 1 << 20


def copy_release(bundle: Path, target: Path, progress: Progress, title: str) -> None:
    """Copy what SHA256SUMS lists into the new folder ``target``, hashing on the way.

    Files become 0755 where the bundle's are executable by their owner, else 0644; as root all belong to root.
    ``target`` appears under its name only when it is whole. Raises VerificationError, BadInputError, OSError.
    """
    listed = sums.read(bundle)
    sums.check_names(bundle, listed)
    partial = target.with_name(f".{target.name}.partial")
    if partial.exists():  # of an earlier run that was killed
        shutil.rmtree(partial)
    total = sum((bundle / name).stat().st_size for name in listed if (bundle / name).is_file())
    try:
        _folder(partial)
        with progress.task(title, total) as task:
            for name, digest in listed.items():
                _copy_file(bundle, partial, name, digest)
                task.advance((partial / name).stat().st_size)
        for name in (sums.NAME, sums.SIGNATURE):
            if (bundle / name).is_file():
                _copy_file(bundle, partial, name, None)
        os.sync()
        partial.rename(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _copy_file(bundle: Path, target: Path, name: str, digest: str | None) -> None:
    source, copy = bundle / name, target / name
    if not source.is_file():
        raise VerificationError("install.missing-file", path=name)
    for folder in reversed(copy.relative_to(target).parents[:-1]):
        if not (target / folder).is_dir():
            _folder(target / folder)
    seen = hashlib.sha256()
    with source.open("rb") as reader, copy.open("xb") as writer:
        while block := reader.read(_BLOCK):
            seen.update(block)
            writer.write(block)
        executable = os.fstat(reader.fileno()).st_mode & 0o100
        os.fchmod(writer.fileno(), PROGRAM_MODE if executable else FILE_MODE)
        if os.geteuid() == 0:
            os.fchown(writer.fileno(), 0, 0)
    if digest is not None and seen.hexdigest() != digest:
        raise VerificationError("install.changed-file", path=name)


def _folder(path: Path) -> None:
    path.mkdir()
    path.chmod(FOLDER_MODE)
    if os.geteuid() == 0:
        os.chown(path, 0, 0)


def same_bundle(bundle: Path, release: Path) -> bool:
    """Whether ``release`` was installed from a bundle with the same list of files and hashes. Raises OSError."""
    installed = release / sums.NAME
    return installed.is_file() and installed.read_bytes() == (bundle / sums.NAME).read_bytes()


def intact(release: Path) -> bool:
    """Whether every listed file of ``release`` is there, unchanged. Raises BadInputError, OSError."""
    return all(_digest(release / name) == digest for name, digest in sums.read(release).items())


def _digest(path: Path) -> str | None:
    if path.is_symlink() or not path.is_file():
        return None
    seen = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            seen.update(block)
    return seen.hexdigest()
