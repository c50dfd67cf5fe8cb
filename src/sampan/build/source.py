"""The engine's source: unpacked safely, whole or not at all; and the licence texts in it."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sampan.build import patches
from sampan.build.pins import EnginePin, Licence
from sampan.errors import BadInputError, BuildError


def unpack(archive: Path, pin: EnginePin, target: Path) -> None:
    """Put ``pin.top`` of the archive, with the pin's changes, at ``target``. Does nothing where it is already there.

    The folder gets its name only when it is whole; what an interrupted run left is removed first. Raises
    BadInputError ``build.archive`` on a damaged archive, a path or link that leads outside, or a special file;
    BuildError ``build.patch`` where a patch does not fit.
    """
    if target.is_dir():
        return
    fresh = target.with_name(f"{target.name}.partial")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        with tarfile.open(archive, "r:*") as opened:
            found = 0
            for member, relative in _chosen(opened, pin):
                _place(opened, member, fresh, relative, archive)
                found += 1
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadInputError("build.archive", path=str(archive), detail=str(error)) from error
    if not found:
        raise BadInputError("build.archive", path=str(archive), detail=f"there is no {pin.top} in it")
    for name, text in pin.changes.items():
        patches.apply(name, text, fresh)
    fresh.rename(target)


def _chosen(opened: tarfile.TarFile, pin: EnginePin) -> Iterator[tuple[tarfile.TarInfo, PurePosixPath]]:
    top = PurePosixPath(pin.top)
    for member in opened:
        path = PurePosixPath(member.name)
        if top in path.parents and path.parts[len(top.parts)] not in pin.omit:
            yield member, path.relative_to(top)


def _place(
    opened: tarfile.TarFile, member: tarfile.TarInfo, root: Path, relative: PurePosixPath, archive: Path
) -> None:
    """Folders and regular files only, with our own modes and owner; the pinned archive has no links."""
    if ".." in relative.parts:
        raise BadInputError("build.archive", path=str(archive), detail=f"unsafe path {member.name}")
    path = root / relative
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = opened.extractfile(member) if member.isreg() else None
    if stream is None:
        raise BadInputError("build.archive", path=str(archive), detail=f"{member.name} is no regular file")
    with stream, path.open("xb") as output:
        shutil.copyfileobj(stream, output)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)


def licence_text(licence: Licence, root: Path) -> str:
    """The text that must travel, from the unpacked source or the compiler's package. Raises BuildError."""
    try:
        text = (root / licence.path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError("build.licence", name=licence.name, path=str(root / licence.path)) from error
    if licence.start is None:
        return text
    _, found, rest = text.partition(licence.start)
    if not found:
        raise BuildError("build.licence", name=licence.name, path=str(root / licence.path))
    whole = licence.start + rest
    if licence.start.startswith("//"):
        lines = whole.splitlines()
        end = next((n for n, line in enumerate(lines) if not line.startswith("//")), len(lines))
        return "\n".join(line.removeprefix("//").removeprefix(" ") for line in lines[:end]) + "\n"
    return whole.partition("*/")[0].rstrip() + "\n"
