"""How long passes take, and so how many bulk texts one may hold while people wait. No clock of its own."""

from __future__ import annotations

from collections.abc import Sequence

from sampan.gateway.engine import Lane
from sampan.gateway.lanes import Item

_RECENT_SECONDS = 5.0  # so long after an interactive text another one is expected
_NEW = 0.2  # share of a new measurement


class Pacer:
    """For an engine with ``slots``."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._last_interactive = float("-inf")
        self._interactive_seconds = 0.0  # of a pass for people
        self._bulk_text_seconds = 0.0
        self.pass_seconds = 0.0
        self.longest_seconds = 0.0

    def measured(self, items: Sequence[Item], seconds: float, now: float) -> None:
        """A pass of these items took ``seconds``."""
        self.pass_seconds = _mixed(self.pass_seconds, seconds)
        self.longest_seconds = max(self.longest_seconds, seconds)
        people = sum(map(_is_for_people, items))
        if people:
            self._last_interactive = now
            if people == len(items):  # with bulk texts in it, bulk passes would be measured by bulk texts, and grow
                self._interactive_seconds = _mixed(self._interactive_seconds, seconds)
        else:
            self._bulk_text_seconds = _mixed(self._bulk_text_seconds, seconds / len(items))

    def bulk_texts(self, now: float) -> int:
        """All slots where nobody is expected; else as many as take no longer than an interactive pass."""
        if now - self._last_interactive > _RECENT_SECONDS or not self._bulk_text_seconds:
            return self._slots
        return max(1, min(self._slots, int(self._interactive_seconds / self._bulk_text_seconds)))


def _is_for_people(item: Item) -> bool:
    return any(job.ask.lane is Lane.INTERACTIVE for job, _ in item.waiting)


def _mixed(old: float, new: float) -> float:
    return new if not old else (1 - _NEW) * old + _NEW * new
