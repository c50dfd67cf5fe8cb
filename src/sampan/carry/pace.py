"""How fast bytes go: not faster than asked, and how long it will take at the present speed."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from sampan import i18n

_LARGEST, _SMALLEST = 1 << 20, 16 << 10  # bytes handed over at once
_WINDOW = 10.0  # seconds over which speed is told


class Pace:
    """``rate``: bytes a second, None for no limit. ``left``: bytes still to go."""

    def __init__(self, rate: int | None, left: int) -> None:
        self._rate, self._left = rate, left
        self._due = time.monotonic()
        self._seen: deque[tuple[float, int]] = deque()
        self.piece_bytes = _LARGEST if rate is None else max(_SMALLEST, min(_LARGEST, rate // 8))

    async def wait(self, size: int) -> None:
        """Sleep until ``size`` bytes may go."""
        now = time.monotonic()
        if self._rate is not None:
            self._due = max(self._due, now - 0.25)  # a pause may be caught up on a little, not for ever
            if self._due > now:
                await asyncio.sleep(self._due - now)
            self._due += size / self._rate
        self._left -= size
        self._seen.append((time.monotonic(), size))
        while len(self._seen) > 1 and self._seen[-1][0] - self._seen[0][0] > _WINDOW:
            self._seen.popleft()

    def note(self) -> str:
        """``1.2 MB/s, 3 min left``; empty as long as nothing can be said."""
        took = self._seen[-1][0] - self._seen[0][0] if len(self._seen) > 1 else 0.0
        if took < 0.5:
            return ""
        speed = sum(size for _, size in list(self._seen)[1:]) / took
        if not speed:
            return ""
        shown = f"{speed / 1e6:.1f} MB/s" if speed >= 1e6 else f"{speed / 1e3:.0f} kB/s"
        return i18n.text("carry.speed", speed=shown, left=_duration(self._left / speed))


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
