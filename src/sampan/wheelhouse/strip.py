"""Dropping debug sections from a shared library: wheels on the index often carry more of them than code.

Only what no loader maps is dropped: every segment keeps its bytes and its place. The section table is kept for the
mapped sections, so that tools still read the file. Layout: System V ABI, ELF-64, little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_MAGIC = b"\x7fELF\x02\x01"  # 64 bit, little-endian
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_PT_LOAD, _SHT_STRTAB, _SHT_NOBITS, _SHF_ALLOC = 1, 3, 8, 2
_NAME = b".shstrtab"


@dataclass(frozen=True)
class _Section:
    """One row of the section table; ``fields`` are all ten, in the file's order."""

    fields: tuple[int, ...]
    name: bytes

    @property
    def mapped(self) -> bool:
        return bool(self.fields[2] & _SHF_ALLOC)


def strip(data: bytes) -> bytes:
    """The file without sections that are not mapped; unchanged where it is not such an ELF or gains nothing."""
    if not data.startswith(_MAGIC) or len(data) < _HEADER.size:
        return data
    header = _HEADER.unpack_from(data)
    try:
        sections = _sections(data, header)
        end = _mapped_end(data, header)
    except (struct.error, IndexError, ValueError, OverflowError):
        return data
    kept = sections[: _prefix(sections)]
    if any(section.mapped for section in sections[len(kept) :]) or not _inside(kept, end):
        return data  # an unusual order: section numbers would change
    stripped = _rebuilt(data, header, kept, end)
    return stripped if len(stripped) < len(data) else data


def _sections(data: bytes, header: tuple[int, ...]) -> list[_Section]:
    offset, size, count, names_at = header[6], header[11], header[12], header[13]
    if size != _SECTION.size or not count:
        raise ValueError("no section table")
    rows = [_SECTION.unpack_from(data, offset + index * size) for index in range(count)]
    names = data[rows[names_at][4] : rows[names_at][4] + rows[names_at][5]]
    return [_Section(row, names[row[0] : names.index(b"\0", row[0])]) for row in rows]


def _mapped_end(data: bytes, header: tuple[int, ...]) -> int:
    offset, size, count = header[5], header[9], header[10]
    rows = [_PROGRAM.unpack_from(data, offset + index * size) for index in range(count)]
    ends = [row[2] + row[5] for row in rows if row[0] == _PT_LOAD]
    end: int = max([*ends, offset + size * count])
    if not ends or end > len(data):
        raise ValueError("cut short")
    return end


def _prefix(sections: list[_Section]) -> int:
    """How many rows stand at the table's start: the null row and the mapped ones."""
    for index, section in enumerate(sections[1:], start=1):
        if not section.mapped:
            return index
    return len(sections)


def _inside(kept: list[_Section], end: int) -> bool:
    return all(row.fields[4] + row.fields[5] <= end for row in kept if row.fields[1] != _SHT_NOBITS)


def _rebuilt(data: bytes, header: tuple[int, ...], kept: list[_Section], end: int) -> bytes:
    """The mapped bytes, then names and table of the kept sections."""
    names = bytearray(b"\0")
    rows = []
    for section in kept:
        rows.append((len(names) if section.name else 0, *section.fields[1:]))
        names += section.name + b"\0" if section.name else b""
    rows.append((len(names), _SHT_STRTAB, 0, 0, end, len(names) + len(_NAME) + 1, 0, 0, 1, 0))
    names += _NAME + b"\0"
    table_at = -(-(end + len(names)) // 8) * 8
    body = data[:end] + bytes(names)
    body += bytes(table_at - len(body)) + b"".join(_SECTION.pack(*row) for row in rows)
    fresh = _HEADER.pack(*header[:6], table_at, *header[7:12], len(rows), len(rows) - 1)
    return fresh + body[_HEADER.size :]
