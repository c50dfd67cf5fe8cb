"""Going through a mapped file of any size: what was passed is given back, so that never all of it counts as ours.

The pages stay in the kernel's cache; touching them again costs no reading. Source: madvise(2), MADV_DONTNEED on a
shared mapping of a file.
"""

from __future__ import annotations

import mmap

WINDOW = 1 << 24  # bytes


def forget(data: mmap.mmap, low: int, high: int) -> None:
    """The pages that lie in ``data[low:high]`` are no longer needed; the last one only if all of it is in there."""
    low, high = low - low % mmap.PAGESIZE, min(high, len(data))
    if high > low:
        data.madvise(mmap.MADV_DONTNEED, low, high - low - high % mmap.PAGESIZE)


def find(data: mmap.mmap, needle: bytes, start: int = 0) -> int:
    """Where ``needle`` stands first from ``start`` on, -1 where it does not."""
    for low in range(start, len(data), WINDOW):
        place = data.find(needle, low, low + WINDOW + len(needle) - 1)
        if place >= 0:
            return place
        forget(data, low, low + WINDOW)
    return -1
