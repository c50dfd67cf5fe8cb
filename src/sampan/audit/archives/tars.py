"""Tar archives, member by member: ustar, GNU long names, pax paths. Sparse files are not unpacked.

Headers come from the standard library; its own iteration trusts the sizes of extended headers and is not used.
Format: POSIX.1-2001, "pax Interchange Format"; GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Iterator

from sampan.audit.archives.limits import MAX_HEADER, PIECE, Share
from sampan.audit.archives.member import DamagedArchive, Member
from sampan.audit.archives.streams import Source

_BLOCK = tarfile.BLOCKSIZE
_KINDS = {
    tarfile.REGTYPE: "file",
    tarfile.AREGTYPE: "file",
    tarfile.CONTTYPE: "file",
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "link",
    tarfile.LNKTYPE: "link",
}
_EXTENDED = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}


def members(source: Source, share: Share) -> Iterator[Member]:
    """Every member in its order. Raises DamagedArchive, Excess.

    Everything behind the end mark is read too: the checksum of a compressed stream stands at its end.
    """
    extended: dict[str, str] = {}
    while (info := _header(source)) is not None:
        share.member()
        padded = -(-info.size // _BLOCK) * _BLOCK
        if info.type in _EXTENDED:
            extended[_EXTENDED[info.type]] = _text(_small(source, info, padded).rstrip(b"\0"))
        elif info.type == tarfile.XHDTYPE:
            extended.update(_pax(_small(source, info, padded)))
        elif info.type in (tarfile.XGLTYPE, b"V"):  # of the whole archive, or its label: nothing that we need
            source.skip(padded)
        else:
            size = _size(extended, info.size)
            yield from _one(source, info, extended, size, share)
            extended = {}
    while piece := source.read(PIECE):
        share.spend(len(piece))


def _header(source: Source) -> tarfile.TarInfo | None:
    """The next header; None at the end mark, a block of zeros."""
    block = source.read(_BLOCK)
    if len(block) == _BLOCK and not any(block):
        return None
    if not block:
        raise DamagedArchive("it has no end mark: cut off, or not a tar")
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError) as error:
        raise DamagedArchive(f"a member's header cannot be read: {error}") from error
    if info.size < 0:
        raise DamagedArchive("a member has a negative size")
    return info


def _one(
    source: Source, info: tarfile.TarInfo, extended: dict[str, str], size: int, share: Share
) -> Iterator[Member]:
    body = _Body(source, size, share)
    kind = _KINDS.get(info.type, "other")
    if kind == "file" and any(key.startswith("GNU.sparse") for key in extended):
        kind = "other"
    hard = info.type == tarfile.LNKTYPE
    if kind == "link":
        body.left = 0
    name, target = extended.get("path", info.name), extended.get("linkpath", info.linkname)
    yield Member(name, kind, target, hard, body.read, set_id=bool(info.mode & (stat.S_ISUID | stat.S_ISGID)))
    if kind != "link":
        share.spend(body.left)
        source.skip(body.left + -size % _BLOCK)


class _Body:
    """The bytes of one member."""

    def __init__(self, source: Source, left: int, share: Share) -> None:
        self._source, self.left, self._share = source, left, share

    def read(self, size: int) -> bytes:
        piece = self._source.read(min(size, self.left, PIECE))
        if not piece and self.left:
            raise DamagedArchive("it ends in the middle of a member")
        self._share.spend(len(piece))
        self.left -= len(piece)
        return piece


def _small(source: Source, info: tarfile.TarInfo, padded: int) -> bytes:
    if info.size > MAX_HEADER:
        raise DamagedArchive(f"an extended header of {info.size} bytes")
    data = source.read(padded)
    if len(data) < padded:
        raise DamagedArchive("it ends in the middle of a header")
    return data[: info.size]


def _pax(data: bytes) -> Iterator[tuple[str, str]]:
    """``LENGTH KEYWORD=VALUE\\n`` and so on."""
    while data:
        number, _, _ = data[:20].partition(b" ")
        if not number.isdigit() or not len(number) < int(number) <= len(data):
            raise DamagedArchive("an extended header contradicts itself")
        keyword, equals, value = data[len(number) + 1 : int(number) - 1].partition(b"=")
        if equals:
            yield _text(keyword), _text(value)
        data = data[int(number) :]


def _size(extended: dict[str, str], size: int) -> int:
    text = extended.get("size", "")
    return int(text) if text.isdecimal() and len(text) < 20 else size


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
