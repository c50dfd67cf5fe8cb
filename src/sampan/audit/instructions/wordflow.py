"""Control flow of architectures whose instructions are words of 32 bits: what they have in common."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.flow import Block
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import Knowledge
from sampan.audit.instructions.layouts import Span
from sampan.audit.instructions.tables import Pattern

_MAX_BLOCK = 4096  # words
_PIECE = _MAX_BLOCK  # words whose branches are looked up at once
_MAX_PIECES = 256  # that are kept


class WordFlow:
    """The reader of one file. A subclass says which words end a block (``BRANCHES``) and what such a word does.

    A block is found by looking up the next branch, not word by word: a hostile file with a thousand ways into one
    long run of code would otherwise cost the product of both.
    """

    BRANCHES: Sequence[Pattern]

    def __init__(self, binary: Binary, imports: Imports, knowledge: Knowledge) -> None:
        self.binary = binary
        self.imports = imports
        self.knowledge = knowledge
        self._span = Span(0, 0, 0)
        self._pieces: dict[tuple[int, int], list[int]] = {}

    def ends(self, word: int, at: int, start: int) -> Block:
        """The block from ``start`` that ends with the branch ``word`` at ``at``."""
        raise NotImplementedError

    def word(self, address: int) -> int | None:
        """The instruction at ``address``, None outside of code."""
        if not self._enter(address):
            return None
        offset = address - self._span.start + self._span.offset
        return int.from_bytes(self.binary.data[offset : offset + 4], "little")

    def block(self, start: int) -> Block | None:
        """Up to the next branch."""
        at = self._next_branch(start) if not start & 3 and self._enter(start) else None
        word = self.word(at) if at is not None and at < start + 4 * _MAX_BLOCK else None
        return self.ends(word, at, start) if at is not None and word is not None else None

    def _enter(self, address: int) -> bool:
        """Whether there is a whole instruction at ``address``; its span is the current one then."""
        if self._span.start <= address <= self._span.end - 4:
            return True
        span = self.binary.span_at(address)
        if span is None or address + 4 > span.end:
            return False
        self._span = span
        return True

    def _next_branch(self, address: int) -> int | None:
        """The first branch at or after ``address`` in the current span: here or in the next piece."""
        low = address - address % (4 * _PIECE)
        for start in (low, low + 4 * _PIECE):
            found = self._branches(start)
            at = bisect_left(found, address)
            if at < len(found):
                return found[at]
        return None

    def _branches(self, start: int) -> list[int]:
        """Addresses of the branches among the words of the current span that lie in the piece from ``start`` on."""
        key = start, self._span.start
        found = self._pieces.get(key)
        if found is None:
            if len(self._pieces) >= _MAX_PIECES:
                self._pieces.clear()
            first = max(start, self._span.start + (-self._span.start) % 4)
            count = max(0, (min(start + 4 * _PIECE, self._span.end) - first) // 4)
            offset = first - self._span.start + self._span.offset
            words = np.frombuffer(self.binary.data, "<u4", count, offset if count else 0)
            ends = np.logical_or.reduce([words & np.uint32(one.mask) == one.value for one in self.BRANCHES])
            found = self._pieces[key] = (np.flatnonzero(ends) * 4 + first).tolist()
        return found


def signed(value: int, bits: int) -> int:
    """The number in the low bits, in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
