"""Put parts together again, once every one of them is what was cut."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from shutil import disk_usage

from sampan import disk, i18n
from sampan.carry import parts
from sampan.carry.parts import Missing, Part, PartList
from sampan.errors import BadInputError, FilesystemError, VerificationError
from sampan.spec import codec
from sampan.spec.ports import Progress, Task

_BUFFER_BYTES = 4 << 20
JOINING_SUFFIX = ".joining"


def find_list(path: Path) -> Path:
    """The list that a person means by a folder, the list itself or one of its parts. Raises BadInputError."""
    if path.is_file() and path.name.endswith(parts.LIST_SUFFIX):
        return path
    folder = path if path.is_dir() else path.parent
    stem = path.name.rpartition(".")[0] if path.is_file() else ""
    found = sorted(folder.glob(f"*{parts.LIST_SUFFIX}")) if folder.is_dir() else []
    named = [one for one in found if one.name == f"{stem}{parts.LIST_SUFFIX}"]
    if len(named or found) != 1:
        names = ", ".join(one.name for one in found) or "-"
        raise BadInputError("carry.no-list", path=str(path), found=names, suffix=parts.LIST_SUFFIX)
    return (named or found)[0]


def read_list(path: Path) -> PartList:
    """Raises BadInputError: missing, damaged, one that would write elsewhere."""
    return parts.checked(codec.load(PartList, path), where=str(path))


def examine(folder: Path, listed: PartList, progress: Progress, *, skip: int = 0) -> Missing:
    """Read every part but the first ``skip``; which are not there or not right. Raises FilesystemError."""
    absent, bad = [], []
    with disk.filesystem_errors(folder), progress.task(i18n.text("carry.examining"), listed.size) as task:
        for number, part in enumerate(listed.parts, 1):
            if number <= skip:
                continue
            path = folder / part.file
            if not path.is_file() or path.is_symlink():
                absent.append(number)
            elif path.stat().st_size != part.size or parts.digest_of(path, task) != part.sha256:
                bad.append(number)
    return Missing(tuple(absent), tuple(bad))


def join(folder: Path, listed: PartList, out: Path, progress: Progress, *, consume: bool = False) -> Path:
    """Write ``out/<name>``, whole and with the promised hash, or nothing.

    ``consume``: the parts must lie where the whole shall be; each is removed once it stands in the whole, so the
    disk needs room for one part more, not for two of everything. A killed run is taken up where it ended.
    Raises VerificationError (parts are missing or bad: which), FilesystemError, BadInputError.
    """
    final = out / listed.name
    if consume:
        return _consume(folder, listed, progress)
    refuse(examine(folder, listed, progress), listed, folder)
    with disk.filesystem_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        free = disk_usage(out).free
        if free < listed.size:
            raise FilesystemError("carry.space", path=str(out), need_mib=listed.size >> 20, free_mib=free >> 20)
        with disk.new_file(final) as sink, progress.task(i18n.text("carry.joining"), listed.size) as task:
            whole = hashlib.sha256()
            for part in listed.parts:
                _append(folder / part.file, sink.fileno(), task, whole)
            _refuse_other(whole.hexdigest(), listed, final)
    return final


def refuse(missing: Missing, listed: PartList, folder: Path, key: str = "carry.need", **more: object) -> None:
    """Raises VerificationError where anything lacks."""
    if missing.numbers:
        raise VerificationError(
            key,
            numbers=missing.numbers,
            name=listed.name,
            folder=str(folder),
            absent=parts.join_numbers(missing.absent) or "-",
            bad=parts.join_numbers(missing.bad) or "-",
            **more,
        )


def _refuse_other(digest: str, listed: PartList, path: Path) -> None:
    if digest != listed.sha256:
        raise VerificationError("carry.whole", path=str(path), expected=listed.sha256, found=digest)


def _append(source: Path, sink: int, task: Task, whole: hashlib._Hash | None = None) -> None:
    with source.open("rb", buffering=0) as stream:
        while piece := stream.read(_BUFFER_BYTES):
            left = memoryview(piece)
            while left:
                left = left[os.write(sink, left) :]
            if whole is not None:
                whole.update(piece)
            task.advance(len(piece))


def _consume(folder: Path, listed: PartList, progress: Progress) -> Path:
    """The whole grows beside the parts; what it has is on the disk before the part that it came from goes."""
    final, growing = folder / listed.name, folder / f"{listed.name}{JOINING_SUFFIX}"
    with disk.filesystem_errors(folder):
        done = _taken(growing, listed.parts)
        refuse(examine(folder, listed, progress, skip=done), listed, folder)
        handle = os.open(growing, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            os.ftruncate(handle, parts.boundaries(listed.parts)[done])
            os.lseek(handle, 0, os.SEEK_END)
            with progress.task(i18n.text("carry.joining"), listed.size) as task:
                for part in listed.parts[done:]:
                    _append(folder / part.file, handle, task)
                    os.fsync(handle)
                    (folder / part.file).unlink()
        finally:
            os.close(handle)
        with progress.task(i18n.text("carry.examining"), listed.size) as task:
            _refuse_other(parts.digest_of(growing, task), listed, growing)
        growing.rename(final)
        disk.sync_folder(folder)
    return final


def _taken(growing: Path, listed: tuple[Part, ...]) -> int:
    """How many parts a killed run put into ``growing`` whole: those that fit its length, but never one too many,
    since a part that is still there will be taken once more.
    """
    if growing.is_symlink() or not growing.is_file():
        return 0
    length = growing.stat().st_size
    starts = parts.boundaries(listed)
    done = max(place for place in range(len(listed) + 1) if starts[place] <= length)
    while done and (growing.parent / listed[done - 1].file).exists():
        done -= 1
    return done
