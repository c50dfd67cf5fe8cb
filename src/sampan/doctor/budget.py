"""How long patterns may take over lines that they do not match: a text may be made to slow us down.

Real logs never come near the limits: a second of fruitless tries in one text. Beyond it, the patterns that
took most of it rest; what they leave out is counted, and told.
"""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter

_TOTAL, _SHARE = 1.0, 0.002  # seconds of all patterns together; then of each one


class Budget:
    """``left_out`` counts the tries that were not made."""

    def __init__(self) -> None:
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._total = 0.0
        self.left_out = 0

    def allows(self, pattern: str) -> bool:
        """Whether the pattern may be tried."""
        if self._total < _TOTAL or self._spent[pattern] < _SHARE:
            return True
        self.left_out += 1
        return False

    def start(self) -> float:
        """A clock's time, in seconds."""
        return perf_counter()

    def spend(self, pattern: str, since: float) -> float:
        """Book what the pattern took since then; the time now."""
        now = perf_counter()
        # a pause of the machine is not the pattern's fault
        taken = min(now - since, 0.1)
        self._spent[pattern] += taken
        self._total += taken
        return now
