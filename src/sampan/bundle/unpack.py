"""Open a bundle's tar that is not trusted. It may hold what ``pack`` writes and nothing else.

No links, no devices, no pax or sparse entries, no set-id bits, no absolute path, no ``..``, no name twice nor twice
but for its case, nothing outside of one top folder. All is judged before a byte is written.
"""

from __future__ import annotations

import os
import tarfile
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sampan import disk
from sampan.bundle import layout
from sampan.errors import BadInputError, FilesystemError, VerificationError

_BLOCK = tarfile.BLOCKSIZE
_MAX_MEMBERS = 200_000
_MAX_PATH_BYTES = 4096  # PATH_MAX
_LONG_NAME = tarfile.GNUTYPE_LONGNAME
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Member:
    """One entry: its path without the final slash, and where its bytes are in the tar. ``start``: of its headers."""

    path: str
    folder: bool
    mode: int
    mtime: int
    offset: int
    size: int
    start: int = 0


def unpack(tar: Path, out: Path) -> Path:
    """Extract into ``out`` and give the bundle's folder, which must not exist yet.

    Raises BadInputError (missing, cut short, not a tar), VerificationError (an entry that no bundle has),
    FilesystemError.
    """
    if not tar.is_file():
        raise BadInputError("file.missing", path=str(tar))
    with disk.filesystem_errors(out), tar.open("rb") as stream:
        members = read_members(stream, tar)
        top = judge(members, tar)
        final = out / top
        if final.exists() or final.is_symlink():
            raise FilesystemError("bundle.foreign", path=str(final))
        out.mkdir(parents=True, exist_ok=True)
        with disk.new_folder(final) as fresh:
            for member in members:
                _extract(stream, member, fresh / "x")
            (fresh / "x" / top).rename(final)
    return final


def read_members(stream: BinaryIO, tar: Path, *, cut: bool = False) -> tuple[Member, ...]:
    """Every entry of the archive, in its order; with ``cut`` what is left of one whose end was taken away.

    Raises BadInputError, VerificationError.
    """
    stream.seek(0, 2)
    end = stream.tell()
    found: list[Member] = []
    for member in _members(stream, end, tar, cut):
        found.append(member)
        if len(found) > _MAX_MEMBERS:
            raise VerificationError("bundle.tar-entry", path=str(tar), entry=member.path, fault="count")
    return tuple(found)


def _members(stream: BinaryIO, end: int, tar: Path, cut: bool) -> Iterator[Member]:
    offset, start, long_name = 0, 0, None
    while not (cut and offset + _BLOCK > end):
        info = _header(stream, offset, tar)
        if info is None:
            return
        start = start if long_name is not None else offset
        data, offset = offset + _BLOCK, offset + _BLOCK + -(-info.size // _BLOCK) * _BLOCK
        if info.size < 0 or (offset > end and not cut):
            raise BadInputError("bundle.tar-cut", path=str(tar))
        if info.type == _LONG_NAME:
            if long_name is not None or info.size > _MAX_PATH_BYTES:
                raise VerificationError("bundle.tar-entry", path=str(tar), entry=info.name, fault="length")
            if offset > end:
                return
            stream.seek(data)
            long_name = stream.read(info.size).rstrip(b"\0").decode("utf-8", "surrogateescape")
            continue
        name, long_name = long_name or info.name, None
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
            raise VerificationError("bundle.tar-entry", path=str(tar), entry=name, fault="kind")
        folder = info.type == tarfile.DIRTYPE
        yield Member(name.removesuffix("/"), folder, info.mode, int(info.mtime), data, info.size, start)


def _header(stream: BinaryIO, offset: int, tar: Path) -> tarfile.TarInfo | None:
    """The header at ``offset``, None at the archive's end."""
    stream.seek(offset)
    block = stream.read(_BLOCK)
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        if len(block) == _BLOCK and not any(block):
            return None
        raise BadInputError("bundle.tar-cut", path=str(tar)) from error


def judge(members: tuple[Member, ...], tar: Path) -> str:
    """The name of the one top folder of a list of entries that a bundle may have. Raises VerificationError."""
    top = members[0].path.split("/")[0] if members else ""
    seen: dict[str, tuple[str, str]] = {}
    for member in members:
        fault = _fault(member, top) or _collision(member, seen)
        if fault:
            raise VerificationError("bundle.tar-entry", path=str(tar), entry=member.path, fault=fault)
    if not members:
        raise VerificationError("bundle.tar-entry", path=str(tar), entry="-", fault="empty")
    return top


def _fault(member: Member, top: str) -> str | None:
    if fault := layout.fault_of_name(member.path):
        return fault
    if member.path != top and not member.path.startswith(f"{top}/"):
        return "top"
    if member.path == top and not member.folder:
        return "top"
    return "mode" if member.mode & ~0o777 or member.mode & 0o022 else None


def _collision(member: Member, seen: dict[str, tuple[str, str]]) -> str | None:
    """``seen``: spelling and kind by folded path. No path twice, none in two spellings, no file that is a folder."""
    if seen.get(_fold(member.path), ("", "parent"))[1] != "parent":
        return "twice"
    path, kind = member.path, "folder" if member.folder else "file"
    while path:
        spelling, known = seen.setdefault(_fold(path), (path, kind))
        if spelling != path or (known == "file") != (kind == "file"):
            return "twice"
        path, kind = path.rpartition("/")[0], "parent"
    if member.folder:
        seen[_fold(member.path)] = (member.path, "folder")
    return None


def _fold(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _extract(stream: BinaryIO, member: Member, folder: Path) -> None:
    path = folder / member.path
    if member.folder:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(layout.FOLDER_MODE)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    stream.seek(member.offset)
    with path.open("xb") as sink:
        left = member.size
        while left and (piece := stream.read(min(left, _BUFFER_BYTES))):
            left -= sink.write(piece)
    path.chmod(layout.PROGRAM_MODE if member.mode & 0o111 else layout.FILE_MODE)
    os.utime(path, (member.mtime, member.mtime))
