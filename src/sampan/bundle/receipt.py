"""A receipt: what an installed release holds, as a few lines that survive a terminal, a chat and a sheet of paper.

Each line is ``@NN text #cccc``; the sum is CRC-32 over number and text, its low 16 bits. The text joined is
``1~name~release~list~total``: the list is base64url of the marks (see ``units``), the total the CRC-32 of all before.
"""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass

from sampan.bundle import layout
from sampan.bundle.units import MARK_BYTES
from sampan.errors import BadInputError

VERSION = "1"
_LINE_LETTERS = 64
_MOST_LINES = 99
_LINE = re.compile(r"@(\d\d)([A-Za-z0-9_.~-]+)#([0-9a-f]{4})")
_STRANGE = re.compile(r"[^A-Za-z0-9_.~@#-]")


@dataclass(frozen=True)
class Receipt:
    """``marks``: of the units that are there and whole."""

    name: str
    release: int
    marks: frozenset[str]


def write(receipt: Receipt) -> str:
    """The lines to copy."""
    raw = b"".join(bytes.fromhex(mark) for mark in sorted(receipt.marks))
    body = f"{VERSION}~{receipt.name}~{receipt.release}~{base64.urlsafe_b64encode(raw).decode().rstrip('=')}"
    text = f"{body}~{zlib.crc32(body.encode()):08x}"
    cut = [text[start : start + _LINE_LETTERS] for start in range(0, len(text), _LINE_LETTERS)]
    if len(cut) > _MOST_LINES:
        raise BadInputError("delta.receipt-long", lines=len(cut))
    return "".join(f"@{number:02d} {line} #{_sum(number, line)}\n" for number, line in enumerate(cut, 1))


def _sum(number: int, line: str) -> str:
    return f"{zlib.crc32(f'{number:02d}{line}'.encode()) & 0xFFFF:04x}"


def read(text: str, *, where: str) -> Receipt:
    """The receipt in whatever surrounds it. Raises BadInputError that names the lines that are damaged."""
    plain = _STRANGE.sub("", text)
    good = {int(n): line for n, line, total in _LINE.findall(plain) if _sum(int(n), line) == total}
    seen = {int(number) for number in re.findall(r"@(\d\d)", plain)}
    if not good:
        raise BadInputError("delta.no-receipt", where=where)
    bad = sorted((seen | set(range(1, max(good) + 1))) - set(good))
    if bad:
        raise BadInputError("delta.receipt-damaged", where=where, lines=", ".join(f"@{n:02d}" for n in bad))
    return _parsed("".join(good[number] for number in sorted(good)), where)


def _parsed(text: str, where: str) -> Receipt:
    body, _, total = text.rpartition("~")
    fields = body.split("~")
    if total != f"{zlib.crc32(body.encode()):08x}":
        raise BadInputError("delta.receipt-cut", where=where)
    if fields[0] != VERSION:
        raise BadInputError("delta.receipt-newer", where=where, version=fields[0])
    try:
        _, name, release, listed = fields
        raw = base64.urlsafe_b64decode(listed + "=" * (-len(listed) % 4))
        marks = frozenset(raw[at : at + MARK_BYTES].hex() for at in range(0, len(raw), MARK_BYTES))
        layout.folder_name(name, int(release))  # it will be part of a file's name
        return Receipt(name, int(release), marks)
    except (ValueError, BadInputError) as error:
        raise BadInputError("delta.receipt-cut", where=where) from error
