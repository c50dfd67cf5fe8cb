"""Runs of addresses in order, and which of them an address is in: one at a time, or many at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from sampan.audit.instructions.layouts import Array, Span


class Spans:
    """The runs must be in order and must not overlap."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = tuple(spans)
        self._starts = [span.start for span in self._spans]
        self._rows = np.array([(span.start, span.end, span.offset) for span in self._spans], np.int64).reshape(-1, 3)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def before(self, address: int) -> Span | None:
        """The run that begins at ``address`` or last before it."""
        index = bisect_right(self._starts, address) - 1
        return self._spans[index] if index >= 0 else None

    def at(self, address: int) -> Span | None:
        """The run that ``address`` is in."""
        index = bisect_right(self._starts, address) - 1
        return self._spans[index] if index >= 0 and address < self._spans[index].end else None

    def holds(self, addresses: Array) -> npt.NDArray[np.bool_]:
        """Which of many are in any run."""
        if not self._spans:
            return np.zeros(len(addresses), bool)
        inside: npt.NDArray[np.bool_] = self._inside(addresses, self._own(addresses))
        return inside

    def offsets(self, addresses: Array) -> Array:
        """Where in the file each of them stands, -1 where in no run."""
        if not self._spans:
            return np.full(len(addresses), -1, np.int64)
        own = self._own(addresses)
        return np.where(self._inside(addresses, own), addresses - own[:, 0] + own[:, 2], -1)

    def _own(self, addresses: Array) -> Array:
        """For each the row of the run that begins last before it, of the first run where none does."""
        return self._rows[np.maximum(np.searchsorted(self._rows[:, 0], addresses, side="right") - 1, 0)]

    @staticmethod
    def _inside(addresses: Array, own: Array) -> npt.NDArray[np.bool_]:
        inside: npt.NDArray[np.bool_] = (addresses >= own[:, 0]) & (addresses < own[:, 1])
        return inside
