"""The text block that the survey script prints: found again in whatever a terminal made of it.

Form, one line each: ``@NN text #crc``. Line 01 says ``sampan1.<lines>.<crc of the joined rest>``; the rest joined is
``key=value;key=value;…``. ``crc`` is what POSIX ``cksum`` computes, as eight hexadecimal digits, over the number and
the text. The text holds neither blanks nor ``@`` nor ``#``, so everything that is not of its alphabet can be thrown
away before reading: line breaks at any column, indentation, full-width and zero-width blanks, quote marks.

Source of the sum: POSIX.1-2017, cksum (CRC of ISO/IEC 8802-3, the length appended, complemented).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from sampan.errors import BadInputError

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_STRANGE = re.compile(r"[^A-Za-z0-9@#%_.,:;/=+()\[\]?!&$^~'\"{}-]")
_LINE = re.compile(r"@(\d\d)([^@#]*)#([0-9a-f]{8})")
_HEAD = re.compile(r"sampan(\d+)\.(\d\d)\.([0-9a-f]{8})")
_MARK = re.compile(r"@(\d\d)")


class _Head(NamedTuple):
    lines: int
    total: str


def read(text: str, where: str) -> list[tuple[str, str]]:
    """The block's fields in their order, values still encoded; ``where`` names the file in errors.

    Raises BadInputError: ``survey.no-block``, ``survey.block-newer``, ``survey.block-damaged`` (names the lines),
    ``survey.block-mixed`` (lines of two surveys).
    """
    plain = cleaned(text)
    good, doubtful = _lines(plain)
    if not good and not doubtful:
        raise BadInputError("survey.no-block", path=where)
    head = _head(good.get(1, ""), where)
    expected = range(1, head.lines + 1) if head else range(1, max({*good, *doubtful}) + 1)
    bad = [number for number in expected if number not in good]
    if bad:
        told = ", ".join(f"@{number:02d}" for number in bad)
        missing = ", ".join(f"@{number:02d}" for number in bad if number not in doubtful) or "-"
        raise BadInputError("survey.block-damaged", path=where, lines=told, missing=missing)
    body = "".join(good[number] for number in expected if number > 1)
    if head is None or cksum(body) != head.total:
        raise BadInputError("survey.block-mixed", path=where)
    return [(key, value) for key, _, value in (field.partition("=") for field in body.split(";")) if key]


def cleaned(text: str) -> str:
    """Only letters that a block can hold: full-width forms made narrow, escapes, blanks and frames dropped."""
    return _STRANGE.sub("", unicodedata.normalize("NFKC", _ESCAPES.sub("", text)))


def cksum(text: str) -> str:
    """What ``printf %s TEXT | cksum`` prints, as eight hexadecimal digits."""
    table, data = _table(), text.encode()
    crc, length = 0, len(data)
    for byte in data:
        crc = (crc << 8 & 0xFFFFFFFF) ^ table[crc >> 24 ^ byte]
    while length:
        crc = (crc << 8 & 0xFFFFFFFF) ^ table[crc >> 24 ^ length & 0xFF]
        length >>= 8
    return f"{crc ^ 0xFFFFFFFF:08x}"


@cache
def _table() -> tuple[int, ...]:
    entries = []
    for index in range(256):
        crc = index << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
        entries.append(crc)
    return tuple(entries)


def _lines(plain: str) -> tuple[dict[int, str], set[int]]:
    """The lines whose sum is right, and the numbers that look like one whose sum is not.

    Of a line that was pasted twice the sound copy counts; of two sound ones the last, as a survey that was run again.
    """
    good = {int(found[1]): found[2] for found in _LINE.finditer(plain) if cksum(f"{found[1]}{found[2]}") == found[3]}
    doubtful = {int(found[1]) for found in _MARK.finditer(plain)} - set(good)
    if not good and "sampan1." not in plain:
        return {}, set()  # an address such as root@10.0.0.1 is no block
    return good, doubtful


def _head(line: str, where: str) -> _Head | None:
    found = _HEAD.fullmatch(line)
    if found is None:
        return None
    if found[1] != "1":
        raise BadInputError("survey.block-newer", path=where, version=found[1])
    return _Head(int(found[2]), found[3])
