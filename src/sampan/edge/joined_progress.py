"""One bar for several downloads at once; it also carries the order to stop to each of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sampan.spec.ports import Task


class StoppedError(Exception):
    """Another download failed, or the user had enough; what came so far stays for the next run."""


@dataclass
class Joined:
    """See ports.Progress: each download is told its own place, the outer task hears the sum."""

    outer: Task
    total: float
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: dict[int, float] = field(default_factory=dict)

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:  # noqa: ARG002
        """A part of the whole."""
        yield _Part(self, title)

    def wait(self, seconds: float) -> None:
        """Sleep, unless it is time to stop. Raises StoppedError."""
        if self.stop.wait(seconds):
            raise StoppedError

    def told(self, part: _Part, place: float) -> None:
        """A part is at ``place``. Raises StoppedError."""
        if self.stop.is_set():
            raise StoppedError
        with self.lock:
            self.done[id(part)] = place
            self.outer.update(completed=sum(self.done.values()), total=self.total, note=part.name)


class _Part:
    def __init__(self, whole: Joined, name: str) -> None:
        self.whole, self.name, self.place = whole, name, 0.0

    def advance(self, amount: float = 1) -> None:
        self.place += amount
        self.whole.told(self, self.place)

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:  # noqa: ARG002
        self.place = self.place if completed is None else completed
        self.whole.told(self, self.place)
