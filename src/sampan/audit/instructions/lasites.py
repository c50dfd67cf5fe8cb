"""Where LoongArch code leads to given functions: calls and jumps, near and far."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from sampan.audit.instructions.arrays import collected, first_of_each
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.layouts import Array
from sampan.audit.instructions.words import pieces

Words: TypeAlias = np.typing.NDArray[np.uint32]


def find(binary: Binary, targets: Array) -> tuple[Array, Array]:
    """(addresses, targets), in the code's order."""
    at, to = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for span in binary.code:
        for address, words, _, _ in pieces(binary, span):
            for places, leads in (_near(words, address, 0xF8000000, 0x50000000), _far(words, address)):
                keep = np.isin(leads, targets)
                at.append(places[keep])
                to.append(leads[keep])
    found, first = first_of_each(np.concatenate(at))
    return found, np.concatenate(to)[first]


def calls(binary: Binary) -> Array:
    """The distinct targets of all calls."""
    return collected(
        leads
        for span in binary.code
        for address, words, _, _ in pieces(binary, span)
        for _, leads in (_near(words, address, 0xFC000000, 0x54000000), _far(words, address))
    )


def _far(words: Words, address: int) -> tuple[Array, Array]:
    """``pcaddu18i`` with the ``jirl`` that follows it; the place is that of the second."""
    first, second = words[:-1], words[1:]
    keep = (first >> np.uint32(25) == 0x0F) & (second >> np.uint32(26) == 0x13)
    keep &= first & np.uint32(31) == second >> np.uint32(5) & np.uint32(31)
    places = np.flatnonzero(keep)
    high = (first[places].astype(np.int64) >> 5 & 0xFFFFF) << 18
    low = (second[places].astype(np.int64) >> 10 & 0xFFFF) << 2
    high, low = high - (high >> 37 << 38), low - (low >> 17 << 18)
    start = places * 4 + address
    return start + 4, start + high + low


def _near(words: Words, address: int, mask: int, value: int) -> tuple[Array, Array]:
    places = np.flatnonzero(words & np.uint32(mask) == value)
    some = words[places].astype(np.int64)
    offset = (some & 0x3FF) << 16 | some >> 10 & 0xFFFF
    at = places * 4 + address
    return at, (offset - ((offset >> 25) << 26)) * 4 + at
