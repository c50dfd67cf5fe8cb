"""Changes to bytes, whatever they mean, and to single numbers."""

from __future__ import annotations

import random

Dice = random.Random
EDGES = (b"\0" * 4, b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\1\0\0\0", b"\xff" * 8, b"\0" * 8)
NUMBERS = (0, 1, 2, 7, 24, 64, 0xFF, 0xFFF, 0xFFFF, 0x10000, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40,
           1 << 61, (1 << 62) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)  # fmt: skip


def scramble(data: bytes, dice: Dice) -> bytes:
    """One to six changes of bytes, whatever they mean."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        if not found:
            return b""
        at = dice.randrange(len(found))
        length = dice.choice((1, 2, 4, 8, 64, 512))
        match dice.randrange(6):
            case 0:
                found[at] ^= 1 << dice.randrange(8)
            case 1:
                edge = dice.choice(EDGES)
                found[at : at + len(edge)] = edge
            case 2:
                found[at : at + length] = dice.randbytes(length)
            case 3:
                del found[at : at + length]
            case 4:
                found[at:at] = found[at : at + length] * dice.choice((1, 2, 50))
            case _:
                del found[at:]
    return bytes(found)


def splice(data: bytes, other: bytes, dice: Dice) -> bytes:
    """A piece of another file in the place of a piece of this one."""
    if not data or not other:
        return other
    length = dice.choice((8, 64, 512, 4096))
    at, start = dice.randrange(len(data)), dice.randrange(len(other))
    return data[:at] + other[start : start + length] + data[at + length :]


def number(data: bytes, at: int, size: int, dice: Dice) -> bytes:
    """A number that matters: an edge, one near the old one, one near the file's end, or one from elsewhere in it."""
    old = int.from_bytes(data[at : at + size], "little")
    elsewhere = dice.randrange(0, max(1, len(data) - 8), 4)
    value = dice.choice(
        (
            dice.choice(NUMBERS),
            old + dice.choice((-8, -1, 1, 8, 0x1000)),
            len(data) - dice.choice((0, 1, 8, 16)),
            int.from_bytes(data[elsewhere : elsewhere + size], "little"),
            old ^ 1 << dice.randrange(8 * size),
        )
    )
    return data[:at] + (value % (1 << 8 * size)).to_bytes(size, "little") + data[at + size :]
