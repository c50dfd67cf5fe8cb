"""Unwind entries: the most reliable word on where functions are.

Source: LSB 5.0, "Exception Frames": .eh_frame_hdr's search table and the .eh_frame entries that it leads to.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.layouts import EH_FRAME_HDR, Array

_MAX_UNWIND = 1 << 24  # bytes that are read entry by entry
_LONG_ENTRY = 0xFFFFFFFF  # the mark of a 64-bit length, which nobody needs
_TABLE = b"\x01\x1b\x03\x3b"  # version 1; pcrel sdata4; udata4; datarel sdata4: what every linker writes
_PIECE = 1 << 16  # entries that are looked at together
_MAX = np.int64(1 << 62)


def ranges(binary: Binary) -> tuple[Array, Array]:
    """(starts, ends) of all unwind entries, sorted by start."""
    empty = np.empty(0, np.int64)
    for segment in binary.segments:
        offset, vaddr = segment["offset"], segment["vaddr"]
        if segment["kind"] == EH_FRAME_HDR and vaddr < _MAX and binary.data[offset : offset + 4] == _TABLE:
            count = int.from_bytes(binary.data[offset + 8 : offset + 12], "little")
            table = binary.records(np.dtype("<i4, <i4"), offset + 12, count)
            starts = table["f0"].astype(np.int64) + vaddr
            return _with_ends(binary, starts, table["f1"].astype(np.int64) + vaddr)
    entries = np.array(list(_entries(binary)), np.int64).reshape(-1, 2)
    if not len(entries):
        return empty, empty
    order = np.argsort(entries[:, 0], kind="stable")
    return entries[order, 0], entries[order, 0] + entries[order, 1]


def _entries(binary: Binary) -> Iterator[tuple[int, int]]:
    """(start, length) of the entries of .eh_frame one after another: static programs have no search table."""
    address, size = binary.section(".eh_frame")
    offset = binary.offset_of(address)
    if offset is None:
        return
    data = binary.data[offset : min(offset + size, offset + _MAX_UNWIND)]
    at = 0
    while at + 16 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 8], "little")
        if length == 0:
            at += 4  # between the parts of two object files
            continue
        if length < 12 or length == _LONG_ENTRY:
            return
        if kind:  # an entry, not what several have in common
            start = int.from_bytes(data[at + 8 : at + 12], "little", signed=True) + address + at + 8
            count = int.from_bytes(data[at + 12 : at + 16], "little")
            if count and binary.span_at(start):
                yield start, count
        at += length + 4


def _with_ends(binary: Binary, starts: Array, entries: Array) -> tuple[Array, Array]:
    """The length stands 12 bytes into an entry whose addresses are pcrel sdata4; others are left out."""
    found, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for low in range(0, len(starts), _PIECE):
        own, at = starts[low : low + _PIECE], entries[low : low + _PIECE]
        offsets = binary.offsets_of(at)
        sound = (offsets >= 0) & (offsets + 16 <= len(binary.data))
        own, at, offsets = own[sound], at[sound], offsets[sound]
        fields = binary.view[offsets[:, None] + np.arange(8, 16)].view("<i4").astype(np.int64)
        sound = (fields[:, 0] + at + 8 == own) & (fields[:, 1] > 0)
        found.append(own[sound])
        ends.append(own[sound] + fields[:, 1][sound])
    return _in_order(np.concatenate(found), np.concatenate(ends))


def _in_order(starts: Array, ends: Array) -> tuple[Array, Array]:
    if (starts[1:] >= starts[:-1]).all():  # as every linker leaves them
        return starts, ends
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]
