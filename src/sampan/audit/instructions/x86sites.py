"""Where x86-64 code leads to given functions, read off the bytes: CALL and JMP rel32, LEA of an address."""

from __future__ import annotations

import numpy as np

from sampan.audit.instructions.arrays import first_of_each
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.layouts import Array
from sampan.audit.instructions.x86 import PIECE
from sampan.audit.windows import forget

_REACH = 8  # bytes from a lead byte to the end of its instruction


def find(binary: Binary, targets: Array) -> tuple[Array, Array]:
    """(addresses, targets), in the code's order. Bytes that only look so lead nowhere, but for one in millions."""
    at, to = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    wanted = np.sort(targets)
    for span in binary.code:
        size = span.end - span.start
        for low in range(0, size, PIECE):
            end = min(size, low + PIECE + _REACH)
            data = binary.view[span.offset + low : span.offset + end]
            for length, places in _leads(data):
                start = places + length - 4
                value = data[start[:, None] + np.arange(4)].copy().view("<i4").astype(np.int64).ravel()
                addresses = places + span.start + low
                leads = addresses + length + value
                row = np.searchsorted(wanted, leads)
                row[row == len(wanted)] = 0
                keep = wanted[row] == leads
                at.append(addresses[keep])
                to.append(leads[keep])
            forget(binary.data, span.offset + low, span.offset + end)
    found, first = first_of_each(np.concatenate(at))
    return found, np.concatenate(to)[first]


def _leads(data: np.typing.NDArray[np.uint8]) -> list[tuple[int, Array]]:
    """(instruction's length, positions): E8 and E9; 0F 8x; REX.W 8D with the program counter as base."""
    room = max(0, len(data) - _REACH)
    first, second = data[:room], data[1 : room + 1]
    calls = np.flatnonzero((first == 0xE8) | (first == 0xE9))
    branches = np.flatnonzero((first == 0x0F) & (second & 0xF0 == 0x80))
    loads = np.flatnonzero((second == 0x8D) & (first & 0xF8 == 0x48))
    loads = loads[data[loads + 2] & 0xC7 == 5]
    return [(5, calls), (6, branches), (7, loads)]
