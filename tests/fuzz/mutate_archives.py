"""Changes to zips and tars: fields of their headers, and members of archives that stay sound."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable

from tests.fuzz.mutate_bytes import Dice, number

Change = Callable[[bytes], bytes]
_ZIP_RECORDS = ((b"PK\1\2", 46), (b"PK\3\4", 30), (b"PK\5\6", 22), (b"PK\6\6", 56))
_TAR_KINDS = (b"0", b"1", b"2", b"5", b"L", b"x", b"S", b"g")
_TAR_FIELDS = ((0, 100), (100, 8), (124, 12), (156, 1), (157, 100), (257, 8), (345, 155))


def changed_zip(data: bytes, dice: Dice, change: Change) -> bytes:
    """One field of a record, or one member."""
    return zip_record(data, dice) if dice.random() < 0.5 else zip_member(data, dice, change)


def changed_tar(data: bytes, dice: Dice, change: Change) -> bytes:
    """One field of a header, or one member."""
    return tar_header(data, dice) if dice.random() < 0.5 else tar_member(data, dice, change)


def zip_record(data: bytes, dice: Dice) -> bytes:
    """One field of the directory, of a member's header or of the end record."""
    magic, size = dice.choice([one for one in _ZIP_RECORDS if one[0] in data])
    at = dice.choice([at for at in range(len(data)) if data.startswith(magic, at)])
    return number(data, at + 2 * dice.randrange(2, size // 2 - 1), dice.choice((2, 4)), dice)


def zip_member(data: bytes, dice: Dice, change: Change) -> bytes:
    """A sound zip with one changed member, name or kind."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    chosen = dice.randrange(len(members))
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for at, (info, content) in enumerate(members):
            if at == chosen and dice.random() < 0.2:
                info.filename = _strange_name(info.filename, dice)
                info.external_attr = dice.choice((0o120777, 0o20666, 0o40755)) << 16
            fresh = change(content) if at == chosen else content
            archive.writestr(info, fresh, dice.choice((0, 8, 8, 12)))
    return sink.getvalue()


def tar_header(data: bytes, dice: Dice) -> bytes:
    """One field of a header, its checksum made right again."""
    headers = [at for at in range(0, len(data) - 511, 512) if data[at + 257 : at + 262] == b"ustar"]
    at = dice.choice(headers)
    block = bytearray(data[at : at + 512])
    start, size = dice.choice(_TAR_FIELDS)
    texts = (b"../../x", b"/etc/x", b"77777777777", b"-1", b"", *_TAR_KINDS)
    binary = (b"\x80" + bytes(size)[5:] + dice.randbytes(4))[:size]
    block[start : start + size] = dice.choice((dice.randbytes(size), binary, dice.choice(texts).ljust(size, b"\0")))[
        :size
    ]
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return data[:at] + bytes(block) + data[at + 512 :]


def tar_member(data: bytes, dice: Dice, change: Change) -> bytes:
    """A sound tar with one changed member, name or link."""
    sink = io.BytesIO()
    form = dice.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT))
    with tarfile.open(fileobj=io.BytesIO(data)) as source, tarfile.open(fileobj=sink, mode="w", format=form) as out:
        members = source.getmembers()
        chosen = dice.choice(members)
        for info in members:
            stream = source.extractfile(info) if info.isreg() else None
            content = stream.read() if stream else b""
            if info is chosen:
                content = change(content) if content else b""
                _bend(info, dice)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return sink.getvalue()


def _bend(info: tarfile.TarInfo, dice: Dice) -> None:
    """Now and then another name, or an extended header that contradicts the plain one."""
    if dice.random() < 0.2:
        info.name = _strange_name(info.name, dice)
    if dice.random() < 0.1:
        keyword = dice.choice(("size", "path", "GNU.sparse.major", "linkpath"))
        info.pax_headers = {keyword: _strange_name("9", dice)}


def _strange_name(name: str, dice: Dice) -> str:
    """A name that someone might trip over."""
    tail = name.rpartition("/")[2]
    own = (
        f"../{tail}",
        f"/{tail}",
        f"a//./{tail}",
        tail + "x" * 300,
        "d/" * 60 + tail,
        f"{tail}\n\x1b[1m{tail}",
        f"{tail}/{tail}",
    )
    fixed = ("\udcff\udc80.so", ".", "x.whl", "p.dist-info/RECORD", "b/plan.json", "9" * 20)
    return dice.choice((*own, *fixed))
