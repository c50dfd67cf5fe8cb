"""One archive into one folder: what the audit will read of it, and what is wrong with it."""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

from sampan.audit.archives import debs, tars, zips
from sampan.audit.archives.contents import Contents, Nowhere
from sampan.audit.archives.decompress import Unpacked
from sampan.audit.archives.limits import PIECE, Budget, Excess, Share
from sampan.audit.archives.member import DamagedArchive, Member, clean
from sampan.audit.archives.streams import HEAD, Plain, compression_of

SUFFIXES = (".whl", ".zip", ".deb", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".txz", ".tar.zst", ".tar.bz2", ".tbz2")
_ELF = b"\x7fELF"
_READ = ("plan.json", "*/plan.json", "*.dist-info/WHEEL", "*.dist-info/RECORD", "*.dist-info/METADATA")
_FIRST = 256  # bytes kept of a script: its first line
_LIBRARY_HEAD = 512  # bytes kept of what is called a library and is none: enough to say what it is
_LIBRARY = re.compile(r".+\.so(\.\d+)*")


def is_archive(name: str) -> bool:
    """By the name's end, as pip, tar and dpkg go by it."""
    return name.lower().endswith(SUFFIXES)


def is_library(name: str) -> bool:
    """By the name's end, as the loader and Python go by it."""
    return _LIBRARY.fullmatch(posixpath.basename(name)) is not None


def unpack(archive: Path, folder: Path, budget: Budget) -> Contents:
    """Read every member of ``archive`` once; write what the audit needs into ``folder``, which exists and is empty.

    What is wrong with the archive is in ``faults``. Raises OSError of this machine only (disk full, unreadable).
    """
    found = Contents(folder)
    name = archive.name.lower()
    with archive.open("rb") as stream:
        try:
            share = budget.share(_length(stream))
            for member in _members(stream, share):
                found.members += 1
                _take(found, member, wheel=name.endswith(".whl"))
        except DamagedArchive as error:
            found.fault("damaged", str(error))
        except Excess as error:
            found.fault("bomb", str(error))
    found.settle_links(rooted=name.endswith(".deb"))
    return found


def _length(stream: BinaryIO) -> int:
    stream.seek(0, 2)
    return stream.tell()


def _members(stream: BinaryIO, share: Share) -> Iterator[Member]:
    """By the first bytes; the name's end may say what it likes."""
    size = _length(stream)
    stream.seek(0)
    head = stream.read(max(HEAD, len(debs.MAGIC)))
    if head.startswith(debs.MAGIC):
        return debs.members(stream, share)
    if head.startswith(b"PK"):
        return zips.members(stream, share)
    compression = compression_of(head)
    plain = Plain(stream, 0, size)
    return tars.members(Unpacked(plain, compression) if compression else plain, share)


def _take(found: Contents, member: Member, *, wheel: bool) -> None:
    name = clean(member.name)
    if name is None:
        if member.kind != "folder" or member.name.strip("./"):
            found.fault("path", member.name)
        return
    if member.kind == "link":
        found.links[name] = f"{'=' if member.hard else '>'}{member.target}"
    elif member.kind == "other":
        found.fault("kind", name)
    elif member.kind == "file":
        _file(found, name, member, wheel=wheel)


def _file(found: Contents, name: str, member: Member, *, wheel: bool) -> None:
    if name in found.names:
        found.fault("duplicate", name)
    found.names.add(name)
    try:
        first = member.read(PIECE)
        wanted = first.startswith(_ELF) or is_archive(name) or any(fnmatchcase(name, each) for each in _READ)
        if is_library(name) and not first.startswith(_ELF):
            found.no_elf[name] = first[:_LIBRARY_HEAD]
        if wheel and ".data/scripts/" in f"/{name}":
            found.heads[name] = first[:_FIRST]
        if wanted or wheel:
            _copy(found, name, first, member, keep=wanted, hashed=wheel)
        if member.set_id:
            found.set_id.add(name)
    except DamagedArchive as error:
        found.fault("damaged", f"{name}: {error}")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        found.fault("duplicate", name)


def _copy(found: Contents, name: str, first: bytes, member: Member, *, keep: bool, hashed: bool) -> None:
    digest, size, path = hashlib.sha256(), 0, found.folder / name
    if keep:
        path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") if keep else Nowhere() as sink:
        piece = first
        while piece:
            sink.write(piece)
            digest.update(piece)
            size += len(piece)
            piece = member.read(PIECE)
    if hashed:
        text = base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
        found.digests[name] = (text, size)
    if keep and name not in found.files:
        found.files.append(name)
