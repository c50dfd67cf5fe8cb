"""Changes to 64-bit ELF files: fields of their tables, and instructions."""

from __future__ import annotations

import struct

from tests.fuzz.mutate_bytes import Dice, number

_TABLES = (2, 4, 0x6474E550)  # PT_DYNAMIC, PT_NOTE, PT_GNU_EH_FRAME
_SECTIONS = (2, 4, 5, 11, 14, 0x6FFFFFF6, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF)  # symbols, relocations, versions…
_A64 = (0x14000000, 0x94000000, 0x54000000, 0x90000000, 0x50000000)  # b, bl, b.cond, adrp, adr
_X86 = (b"\xe8", b"\xe9", b"\x0f\x84")  # call, jmp, je


def field(data: bytes, dice: Dice) -> bytes:
    """One to three fields of the header, of a segment, section, dynamic entry, symbol or relocation."""
    for _ in range(dice.randint(1, 3)):
        at, size = dice.choice(_places(data, dice))
        data = number(data, at, size, dice)
    return data


def _places(data: bytes, dice: Dice) -> list[tuple[int, int]]:
    """(offset, bytes) of fields, one of each table."""
    segments, sections = struct.unpack_from("<QQ", data, 32)
    segment = segments + 56 * dice.randrange(max(1, data[56]))
    section = sections + 64 * dice.randrange(max(1, data[60]))
    places = [dice.choice(((16, 2), (18, 2), (24, 8), (32, 8), (40, 8), (54, 2), (56, 2), (60, 2), (62, 2)))]
    places += [(segment + dice.choice((0, 4)), 4), (segment + 8 * dice.randint(1, 6), 8)]
    places += [(section + dice.choice((0, 4, 40, 44)), 4), (section + 8 * dice.choice((1, 2, 3, 4, 6, 7)), 8)]
    for kind, _, start, _, _, size in _rows("<IIQQQQ", data, segments, 56, data[56]):
        if kind in _TABLES:
            places.append((start + dice.randrange(max(1, size // 8)) * 8, 8))
    for _, kind, _, _, start, size in _rows("<IIQQQQ", data, sections, 64, data[60]):
        if kind in _SECTIONS:
            places.append((start + dice.randrange(max(1, size // 4)) * 4, dice.choice((4, 8))))
    return [(at, size) for at, size in places if 0 <= at <= len(data) - size] or [(16, 2)]


def _rows(layout: str, data: bytes, start: int, size: int, count: int) -> list[tuple[int, ...]]:
    return [struct.unpack_from(layout, data, start + size * row) for row in range(count)]


def code(data: bytes, dice: Dice) -> bytes:
    """Instructions from elsewhere in the file, branches to anywhere, or noise in an executable segment."""
    segments = _rows("<IIQQQQ", data, struct.unpack_from("<Q", data, 32)[0], 56, data[56])
    _, _, start, _, _, size = dice.choice([row for row in segments if row[0] == 1 and row[1] & 1 and row[5] > 8])
    found = bytearray(data)
    for _ in range(dice.randint(1, 12)):
        at = start + dice.randrange(0, size - 7, dice.choice((1, 4)))
        source = dice.randrange(0, len(data) - 8)
        word = dice.choice(_A64) | dice.randrange(1 << 22)
        jump = dice.choice(_X86) + dice.randrange(-size, size).to_bytes(4, "little", signed=True)
        piece = dice.choice((data[source : source + 8], word.to_bytes(4, "little"), jump, dice.randbytes(4)))
        found[at : at + len(piece)] = piece
    return bytes(found)
