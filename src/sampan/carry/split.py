"""Cut a file into parts in one reading, and cut single parts again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection
from pathlib import Path
from shutil import disk_usage
from typing import BinaryIO

from sampan import disk, i18n
from sampan.carry import parity, parts
from sampan.carry.parts import Part, PartList
from sampan.errors import BadInputError, FilesystemError, VerificationError
from sampan.spec import codec
from sampan.spec.ports import Progress, Task

_BUFFER_BYTES = 4 << 20


def split(
    path: Path, out: Path, wanted: str, size: int | None, progress: Progress, *, parity_parts: int = 0
) -> PartList:
    """Write every part and, last, the two lists into ``out``; nothing that looks whole is there before it is.

    Raises BadInputError, UsageError (see ``parts.part_size``), FilesystemError (not enough space, said beforehand).
    """
    total = _size(path)
    each = parts.part_size(total, wanted, size)
    count = max(1, math.ceil(total / each))
    parts.check_parity(count, parity_parts)
    with disk.filesystem_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        _need_space(out, total + parity_parts * min(each, total))
        for old in (out / f"{path.name}{suffix}" for suffix in (parts.LIST_SUFFIX, parts.SUMS_SUFFIX)):
            old.unlink(missing_ok=True)  # they would vouch for parts that are about to be replaced
        whole, made = hashlib.sha256(), []
        with path.open("rb", buffering=0) as stream, progress.task(i18n.text("carry.splitting"), total) as task:
            for number in range(1, count + 1):
                name = parts.part_name(path.name, number, count)
                length = min(each, total - each * (number - 1))
                made.append(_cut(stream, out / name, length, task, whole=whole))
        computed = parity.make(path, out, made, parity_parts, progress)
        listed = PartList(path.name, total, whole.hexdigest(), tuple(made), computed)
        disk.write(out / f"{path.name}{parts.SUMS_SUFFIX}", parts.sums(listed).encode())
        disk.write(out / f"{path.name}.sha256", f"{listed.sha256}  {listed.name}\n".encode())
        disk.write(out / f"{path.name}{parts.LIST_SUFFIX}", codec.to_json(listed).encode())
    return listed


def again(path: Path, out: Path, listed: PartList, only: Collection[int], progress: Progress) -> tuple[Part, ...]:
    """Cut some parts once more, as ``listed`` says. Raises VerificationError where the file is not that one."""
    starts = parts.boundaries(listed.parts)
    if _size(path) != listed.size:
        raise VerificationError("carry.other-file", path=str(path), name=listed.name)
    made = []
    with disk.filesystem_errors(out), path.open("rb", buffering=0) as stream:
        out.mkdir(parents=True, exist_ok=True)
        total = sum(listed.parts[number - 1].size for number in only)
        with progress.task(i18n.text("carry.splitting"), total) as task:
            for number in only:
                wanted = listed.parts[number - 1]
                stream.seek(starts[number - 1])
                made.append(_cut(stream, out / wanted.file, wanted.size, task, promised=wanted.sha256))
    return tuple(made)


def _size(path: Path) -> int:
    try:
        if not path.is_file():
            raise BadInputError("file.missing", path=str(path))
        return path.stat().st_size
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error


def _need_space(out: Path, total: int) -> None:
    free = disk_usage(out).free
    if free < total:
        raise FilesystemError("carry.space", path=str(out), need_mib=total >> 20, free_mib=free >> 20)


def _cut(
    stream: BinaryIO,
    final: Path,
    length: int,
    task: Task,
    *,
    whole: hashlib._Hash | None = None,
    promised: str | None = None,
) -> Part:
    """One part from where the stream stands; it appears under its name only whole and, where promised, right."""
    digest, left = hashlib.sha256(), length
    with disk.new_file(final) as sink:
        while left:
            piece = stream.read(min(left, _BUFFER_BYTES))
            if not piece:
                raise BadInputError("carry.shrank", path=str(final))
            for each in (digest, whole):
                if each is not None:
                    each.update(piece)
            sink.write(piece)
            left -= len(piece)
            task.advance(len(piece))
        if promised not in (None, digest.hexdigest()):
            raise VerificationError("carry.other-file", path=str(stream.name), name=final.name)
    return Part(final.name, length, digest.hexdigest())
