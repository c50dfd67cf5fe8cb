"""Checks SentencePiece's precompiled normalizer before a library walks it: a damaged one makes the library abort.

Layout (Darts-clone double array): 4 bytes little-endian length of the array, its 32-bit units, then replacements,
each ended by a zero byte. A unit with bit 31 holds a position among the replacements, any other leads to 256
neighbours.
"""

from __future__ import annotations

import numpy as np


def is_sound(charsmap: bytes) -> bool:
    """Whether every step from every unit stays inside, and every replacement is whole UTF-8."""
    length = int.from_bytes(charsmap[:4], "little")
    if len(charsmap) < 8 or length < 4 or length % 4 or 4 + length >= len(charsmap):
        return False  # the engine, too, wants at least one byte of replacements
    units = np.frombuffer(charsmap, dtype="<u4", count=length // 4, offset=4)
    replacements = charsmap[4 + length :]
    values = units[units >> 31 == 1] & 0x7FFFFFFF
    nodes = np.flatnonzero(units >> 31 == 0).astype(np.int64)
    offsets = (units[nodes].astype(np.int64) >> 10) << ((units[nodes] & 0x200) >> 6).astype(np.int64)
    if ((nodes ^ offsets) | 0xFF).max(initial=0) >= len(units):
        return False
    return _are_texts(replacements, values)


def _are_texts(replacements: bytes, positions: np.ndarray[tuple[int, ...], np.dtype[np.uint32]]) -> bool:
    if positions.size == 0:
        return True
    if int(positions.max()) >= len(replacements) or not replacements.endswith(b"\0"):
        return False
    try:
        replacements.decode("utf-8")
    except UnicodeDecodeError:
        return False
    starts = np.frombuffer(replacements, dtype=np.uint8)[positions]
    return not bool(((starts & 0xC0) == 0x80).any())  # none begins in the middle of a character
