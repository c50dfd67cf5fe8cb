"""Clients that were answered together ask again together: the next pass waits for them, at most 2 ms."""

from __future__ import annotations

GATHER_SECONDS = 0.002


class Gathering:
    """After a pass for several requests. Without it, the first to ask again would go alone, and the engine would
    alternate between passes of one text and of all the others. Times are seconds of the caller's clock.
    """

    def __init__(self) -> None:
        self.until = 0.0
        self._expected = 0  # requests that the last pass answered: so many may come again at once

    def begin(self, answered: int, now: float) -> None:
        """A pass answered so many requests."""
        self._expected, self.until = answered, now + GATHER_SECONDS

    def is_on(self, now: float) -> bool:
        """Whether others may be about to ask again."""
        return self._expected > 1 and now < self.until

    def lacks(self, texts: int, most: int, now: float) -> bool:
        """Whether a pass of ``texts`` should wait for more, of ``most`` that it can hold."""
        return self.is_on(now) and texts < min(most, self._expected)

    def end(self) -> None:
        """Wait no longer."""
        self.until = 0.0
