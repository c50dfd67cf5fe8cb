"""Where LoongArch code leads to given functions: calls and jumps."""

from __future__ import annotations

import numpy as np

from sampan.audit.instructions.binary import Array, Binary
from sampan.audit.instructions.words import pieces


def find(binary: Binary, targets: Array) -> tuple[Array, Array]:
    """(addresses, targets), in the code's order."""
    at, to = _branches(binary, 0xF8000000, 0x50000000)
    keep = np.isin(to, targets)
    at, first = np.unique(at[keep], return_index=True)
    return at, to[keep][first]


def calls(binary: Binary) -> Array:
    """The distinct targets of all calls."""
    return np.unique(_branches(binary, 0xFC000000, 0x54000000)[1])


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
