"""Where LoongArch code leads to given functions: calls and jumps, near and far."""

from __future__ import annotations

import numpy as np

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.layouts import Array
from sampan.audit.instructions.words import pieces


def find(binary: Binary, targets: Array) -> tuple[Array, Array]:
    """(addresses, targets), in the code's order."""
    found = (_branches(binary, 0xF8000000, 0x50000000), _pairs(binary))
    at, to = (np.concatenate(parts) for parts in zip(*found, strict=True))
    keep = np.isin(to, targets)
    at, first = np.unique(at[keep], return_index=True)
    return at, to[keep][first]


def calls(binary: Binary) -> Array:
    """The distinct targets of all calls."""
    near, far = _branches(binary, 0xFC000000, 0x54000000)[1], _pairs(binary)[1]
    return np.unique(np.concatenate((near, far)))


def _pairs(binary: Binary) -> tuple[Array, Array]:
    """``pcaddu18i`` with the ``jirl`` that follows it; the place is that of the second."""
    at, to = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for span in binary.code:
        for address, words, _, _ in pieces(binary, span):
            first, second = words[:-1], words[1:]
            keep = (first >> np.uint32(25) == 0x0F) & (second >> np.uint32(26) == 0x13)
            keep &= first & np.uint32(31) == second >> np.uint32(5) & np.uint32(31)
            places = np.flatnonzero(keep)
            high = (first[places].astype(np.int64) >> 5 & 0xFFFFF) << 18
            low = (second[places].astype(np.int64) >> 10 & 0xFFFF) << 2
            high, low = high - (high >> 37 << 38), low - (low >> 17 << 18)
            start = places * 4 + address
            at.append(start + 4)
            to.append(start + high + low)
    return np.concatenate(at), np.concatenate(to)


def _branches(binary: Binary, mask: int, value: int) -> tuple[Array, Array]:
    at, to = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for span in binary.code:
        for address, words, _, _ in pieces(binary, span):
            places = np.flatnonzero(words & np.uint32(mask) == value)
            some = words[places].astype(np.int64)
            offset = (some & 0x3FF) << 16 | some >> 10 & 0xFFFF
            at.append(places * 4 + address)
            to.append((offset - ((offset >> 25) << 26)) * 4 + at[-1])
    return np.concatenate(at), np.concatenate(to)
