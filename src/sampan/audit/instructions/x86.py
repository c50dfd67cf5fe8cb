"""Find x86-64 instructions: functions in which candidate bytes stand are decoded from their first byte.

The decoder is iced-x86: it names the CPUID features of every instruction and was four times as fast as capstone's
linear sweep on the same file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from iced_x86 import Decoder

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.finds import Find
from sampan.audit.instructions.functions import Functions
from sampan.audit.instructions.layouts import Array
from sampan.audit.instructions.x86tables import STRANGER, candidates, needs
from sampan.audit.windows import forget

PIECE = 1 << 20  # bytes
_OVERLAP = 4
_LONGEST = 15  # bytes of an instruction
_NEAR = 64  # bytes on each side of a find, outside of unwound code, that must decode


def scan(binary: Binary, functions: Functions) -> dict[int, list[Find]]:
    """Finds by the index of their function, one for each set of features."""
    found: dict[int, list[Find]] = {}
    for index, last in _worth_decoding(binary, functions).items():
        totals: dict[tuple[str, ...], list[int]] = {}
        low, high = functions.range(index)
        for find in each(binary, functions, low, min(high, last + _LONGEST)):
            one = totals.setdefault(find.features, [find.address, 0])
            one[1] += 1
        if totals:
            found[index] = [Find(first, features, "", count) for features, (first, count) in totals.items()]
    return found


def _worth_decoding(binary: Binary, functions: Functions) -> dict[int, int]:
    """Functions with candidates, by index, and where the last one stands."""
    found: dict[int, int] = {}
    for span in binary.code:
        size = span.end - span.start
        for low in range(0, size, PIECE):
            first = max(0, low - _OVERLAP)
            piece = binary.view[span.offset + first : span.offset + min(size, low + PIECE + _OVERLAP)]
            addresses = candidates(piece) + span.start + first
            indices = np.searchsorted(functions.starts, addresses, side="right") - 1
            found.update(zip(indices.tolist(), addresses.tolist(), strict=True))  # in order: the last one stays
            forget(binary.data, span.offset + first, span.offset + low + PIECE)
    found.pop(-1, None)
    return found


def each(binary: Binary, functions: Functions, low: int, high: int) -> Iterator[Find]:
    """Every instruction between two addresses that needs a feature."""
    table = needs()
    known = table.known
    strangers: list[int] = []
    found: list[Find] = []
    for instruction in decode(binary, low, high):
        features = known[instruction.code]
        if features is None:
            features = table.learn(instruction)
        if features:
            if features is STRANGER:
                strangers.append(instruction.ip)
            else:
                found.append(Find(instruction.ip, features))
    if strangers and found:
        yield from _believed(functions, found, np.array(strangers, np.int64))
    else:
        yield from found


def _believed(functions: Functions, found: list[Find], strangers: Array) -> Iterator[Find]:
    """Without those that stand beside bytes that are no code, where no unwind entry vouches for them."""
    addresses = np.array([find.address for find in found], np.int64)
    near = np.searchsorted(strangers, addresses + _NEAR) - np.searchsorted(strangers, addresses - _NEAR)
    for find, keep in zip(found, ((near == 0) | functions.covered(addresses)).tolist(), strict=True):
        if keep:
            yield find


def decode(binary: Binary, low: int, high: int) -> Decoder:
    """The instructions from ``low`` on."""
    span = binary.span_at(low)
    if span is None:
        return Decoder(64, b"", ip=low)
    offset = low - span.start + span.offset
    return Decoder(64, binary.data[offset : offset + min(high, span.end) - low], ip=low)
