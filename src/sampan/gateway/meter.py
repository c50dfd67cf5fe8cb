"""What is counted while serving: plain numbers, so counting costs nearly nothing. Shown by ``exposition.py``."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

# 1 ms to 5 minutes: a short text on a fast CPU, a long chat on a slow one.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
TEXTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FILL = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


class Histogram:
    """Counts by upper bound, as Prometheus has them."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Meter:
    """All of one gateway's counts."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int, str]] = Counter()  # endpoint, status, key
        self.tokens: Counter[tuple[str, str, str]] = Counter()  # endpoint, key, kind (prompt, completion)
        self.errors: Counter[str] = Counter()  # by code
        self.seconds: dict[str, Histogram] = {}  # by endpoint
        self.queue_seconds = Histogram(SECONDS)
        self.engine_seconds = Histogram(SECONDS)
        self.pass_texts = Histogram(TEXTS)
        self.pass_fill = Histogram(FILL)
        self.shared = 0  # texts that were in the engine already for somebody else
        self.retried_alone = 0
        self.disconnects = 0
        self.selftest_ok: bool | None = None

    def finished(self, endpoint: str, status: int, key: str, seconds: float) -> None:
        """One request was answered."""
        self.requests[endpoint, status, key] += 1
        histogram = self.seconds.get(endpoint)
        if histogram is None:
            histogram = self.seconds[endpoint] = Histogram(SECONDS)
        histogram.observe(seconds)
