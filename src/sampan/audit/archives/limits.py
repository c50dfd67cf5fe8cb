"""How much an archive may ask for. Generous for real ones: the largest wheels unpack to 4 GB at a ratio below 10."""

from __future__ import annotations

MAX_MEMBERS = 200_000
MAX_DEPTH = 3  # archives within archives
MAX_NAME = 4096  # bytes: PATH_MAX
MAX_PART = 255  # bytes of one component: NAME_MAX
MAX_DIRECTORY = 32 << 20  # bytes of a zip's directory; each entry costs ten times its size in memory
MAX_HEADER = 1 << 20  # bytes of a tar's extended header
MEMORY = 256 << 20  # bytes that a decompressor may take
PIECE = 1 << 20  # bytes read at a time
_FREE, _RATIO = 256 << 20, 100  # so many bytes in any case, so many times the archive's size besides
_TOTAL = 64 << 30


class Excess(Exception):
    """The archive asks for too much; the text says of what, in English."""


class Budget:
    """Bytes that may still be unpacked in one audit, all archives together."""

    def __init__(self, total: int = _TOTAL) -> None:
        self._left = total

    def share(self, size: int) -> Share:
        """The part of one archive of ``size`` bytes."""
        return Share(self, _FREE + _RATIO * size)

    def spend(self, amount: int) -> None:
        """Raises Excess."""
        self._left -= amount
        if self._left < 0:
            raise Excess("all archives together unpack to more than the audit reads")


class Share:
    """Bytes that one archive may unpack to, and its members."""

    def __init__(self, budget: Budget, limit: int) -> None:
        self._budget, self._limit, self._left, self._members = budget, limit, limit, 0

    def spend(self, amount: int) -> None:
        """So many bytes were unpacked. Raises Excess."""
        self._left -= amount
        if self._left < 0:
            raise Excess(f"unpacks to more than {self._limit >> 20} MiB, over {_RATIO} times its own size")
        self._budget.spend(amount)

    def member(self) -> None:
        """One more member. Raises Excess."""
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise Excess(f"has more than {MAX_MEMBERS} members")
