"""A delta: a bundle without the files that the target has, made whole again there from an installed release.

It is a tar like a bundle's, with one top folder, that holds delta.json, the full SHA256SUMS, manifest.json and
signature, and the files that travel as one stream: ``packed.xz``, and ``plain`` for what does not compress.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile, disk_usage
from typing import ClassVar

from sampan import disk, i18n
from sampan.bundle import layout, sums
from sampan.bundle.archive import Archive
from sampan.bundle.manifest import Manifest
from sampan.bundle.streams import Quiet, Reader, decompressed
from sampan.bundle.verify import verify
from sampan.errors import BadInputError, FilesystemError, SampanError, VerificationError
from sampan.spec import codec
from sampan.spec.ports import Progress, Task

FACTS, PACKED, PLAIN = "delta.json", "packed.xz", "plain"
CARRIED = (layout.MANIFEST, layout.SUMS, layout.SIGNATURE)  # as they are, for whoever verifies before rebuilding


@dataclass(frozen=True)
class Sent:
    """One file of a stream, in its order; ``size`` in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class Delta:
    """``since``: what the target had when this was made, for people. ``full_bytes``: of the whole bundle's files."""

    SCHEMA: ClassVar[str] = "sampan/delta/1"

    name: str
    release: int
    since: str
    full_bytes: int
    packed: tuple[Sent, ...]
    plain: tuple[Sent, ...]


def is_delta(path: Path) -> bool:
    """Whether this file is a delta. False for what is no tar at all: whoever opens it says what is wrong."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return FACTS in Archive(stream, path).files
    except (SampanError, OSError):
        return False


def refuse_delta(path: Path) -> None:
    """For what needs every file there. Raises BadInputError ``delta.alone``."""
    if is_delta(path):
        raise BadInputError("delta.alone", path=str(path))


def rebuild(delta: Path, installed_release: Path, out: Path, *, progress: Progress | None = None) -> Path:
    """Make the full bundle's folder below ``out`` and give it; every file is verified, nothing is executed.

    Who signed it is for the caller to judge, of the delta beforehand or of the folder. Raises BadInputError (not a
    delta, cut), VerificationError (``delta.lacks``: the release here is not the one it was made for; a file is not
    what was sealed), FilesystemError (no space, said beforehand; a folder of that name is there).
    """
    with disk.filesystem_errors(out), ExitStack() as stack:
        archive = _opened(delta, stack)
        facts, digests, sealed = _facts(archive), _digests(archive), archive.manifest()
        final = out / archive.top
        if final.exists() or final.is_symlink():
            raise FilesystemError("bundle.foreign", path=str(final))
        taken = _taken(digests, facts, installed_release)
        out.mkdir(parents=True, exist_ok=True)
        free = disk_usage(out).free
        if free < facts.full_bytes:
            raise FilesystemError("carry.space", path=str(out), need_mib=facts.full_bytes >> 20, free_mib=free >> 20)
        fresh = stack.enter_context(disk.new_folder(final)) / archive.top
        fresh.mkdir()
        task = (
            stack.enter_context(progress.task(i18n.text("delta.rebuilding"), facts.full_bytes))
            if progress
            else Quiet()
        )
        _fill(archive, facts, fresh, task)
        for path, source in taken.items():
            _make_room(fresh / path)
            copyfile(source, fresh / path, follow_symlinks=False)
            task.advance((fresh / path).stat().st_size)
        _finish(fresh, sealed, archive.files[layout.SUMS].mtime)
        _refuse_wrong(fresh, delta)
        fresh.rename(final)
        disk.sync_folder(out)
    return final


def _opened(delta: Path, stack: ExitStack) -> Archive:
    try:
        stream = stack.enter_context(delta.open("rb"))
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(delta)) from error
    archive = Archive(stream, delta)
    if FACTS not in archive.files:
        raise BadInputError("delta.not-one", path=str(delta))
    return archive


def _facts(archive: Archive) -> Delta:
    where = f"{archive.path}: {FACTS}"
    try:
        text = (archive.read(FACTS) or b"").decode()
    except UnicodeDecodeError as error:
        raise BadInputError("artefact.binary", path=where) from error
    found = codec.from_json(Delta, text, where=where)
    if archive.top != layout.folder_name(found.name, found.release) or any(s.size < 0 for s in _all(found)):
        raise VerificationError("bundle.tar-entry", path=str(archive.path), entry=FACTS, fault="top")
    return found


def _all(facts: Delta) -> tuple[Sent, ...]:
    return (*facts.packed, *facts.plain)


def _digests(archive: Archive) -> dict[str, str]:
    digests = sums.parse(archive.read(layout.SUMS) or b"")
    if digests is None:
        raise BadInputError("bundle.unsealed", path=str(archive.path))
    return digests


def _taken(digests: Mapping[str, str], facts: Delta, installed: Path) -> dict[str, Path]:
    """Where each file that does not travel is here. Names of both lists were judged when they were read."""
    sent = [one.path for one in _all(facts)]
    if (
        len(set(sent)) != len(sent)
        or not {*sent} <= {*digests}
        or sum(s.size for s in _all(facts)) > facts.full_bytes
    ):
        raise VerificationError("delta.list", name=f"{facts.name}-{facts.release}")
    try:
        here = sums.parse((installed / layout.SUMS).read_bytes()) or {}
    except OSError as error:
        raise BadInputError("bundle.unsealed", path=str(installed)) from error
    homes = {digest: installed / path for path, digest in here.items() if _is_plain(installed / path)}
    wanted = {path: digest for path, digest in digests.items() if path not in sent and path not in CARRIED}
    absent = sorted(path for path, digest in wanted.items() if digest not in homes)
    if absent:
        raise VerificationError(
            "delta.lacks", name=f"{facts.name}-{facts.release}", since=facts.since, count=len(absent), first=absent[0]
        )
    return {path: homes[digest] for path, digest in wanted.items()}


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _fill(archive: Archive, facts: Delta, fresh: Path, task: Task) -> None:
    """What travelled. A stream that is longer or shorter than the list says is refused as it is read."""
    for name in CARRIED:
        text = archive.read(name)
        if text is not None:
            (fresh / name).write_bytes(text)
    for member, listed, unpacked in ((PACKED, facts.packed, True), (PLAIN, facts.plain, False)):
        if listed:
            if member not in archive.files:
                raise BadInputError("bundle.tar-cut", path=str(archive.path))
            pieces = archive.pieces(archive.files[member])
            stream = Reader(decompressed(pieces, archive.path) if unpacked else pieces)
            for one in listed:
                _make_room(fresh / one.path)
                with (fresh / one.path).open("xb") as sink:
                    if stream.copy(sink.write, one.size) != one.size:
                        raise BadInputError("bundle.tar-cut", path=str(archive.path))
                task.advance(one.size)


def _make_room(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)


def _finish(fresh: Path, sealed: Manifest, when: int) -> None:
    """Modes and times as sealing gave them: packing this folder gives the full bundle's bytes."""
    programs = sealed.programs
    for entry in layout.entries(fresh):
        path = fresh / entry.path
        if entry.kind == "folder":
            path.chmod(layout.FOLDER_MODE)
        else:
            path.chmod(layout.PROGRAM_MODE if entry.path in programs else layout.FILE_MODE)
            os.utime(path, (when, when))
    fresh.chmod(layout.FOLDER_MODE)


def _refuse_wrong(fresh: Path, delta: Path) -> None:
    problems = verify(fresh)
    if problems:
        raise VerificationError("delta.wrong", path=str(delta), count=len(problems), first=problems[0].message)
