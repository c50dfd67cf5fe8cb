"""What becomes of the texts of a pass: handed out, tried alone, or failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sampan.gateway import vectors
from sampan.gateway.engine import (
    BadVectorError,
    Embedded,
    EngineBrokenError,
    EngineFault,
    EngineRefusedError,
    InputTooLongError,
    TextOrTokens,
)
from sampan.gateway.lanes import Item, Job
from sampan.gateway.meter import Meter
from sampan.gateway.settings import ServedModel
from sampan.gateway.vector_cache import VectorCache

_OF_ONE_TEXT = (EngineBrokenError, EngineRefusedError, InputTooLongError, BadVectorError)


class Outcomes:
    """Of one engine's passes. ``alone``: texts of a pass that failed, each to be tried by itself.

    ``known`` are the texts that wait or are inside; ``fail`` ends a request with an error.
    """

    def __init__(
        self,
        model: ServedModel,
        meter: Meter,
        cache: VectorCache,
        known: dict[TextOrTokens, Item],
        fail: Callable[[Job, EngineFault], None],
    ) -> None:
        self._model = model
        self._meter = meter
        self._cache = cache
        self._known = known
        self._fail = fail
        self.alone: list[Item] = []

    def hand_out(self, items: Sequence[Item], found: Embedded, counts: Sequence[int]) -> int:
        """Give each text's vector to all who wait for it; how many requests that answered."""
        answered = 0
        for item, vector, tokens in zip(items, found.vectors, counts, strict=True):
            try:
                vectors.check(vector, dimensions=self._model.dimensions, normalized=self._model.normalized)
            except BadVectorError as fault:
                self.blame([item], fault, alone=len(items) == 1)
                continue
            self._known.pop(item.text, None)
            if self._cache.limit:
                self._cache.put(item.text, vector, tokens)
            for job, place in item.waiting:
                job.give(place, vector, tokens)
                answered += not job.left
        return answered

    def blame(self, items: list[Item], fault: EngineFault, *, alone: bool | None = None) -> None:
        """Which of several texts failed is not known: each is tried alone. One alone fails."""
        alone = len(items) == 1 if alone is None else alone
        if alone or not isinstance(fault, _OF_ONE_TEXT):
            self.fail_all(items, fault)
            return
        self._meter.retried_alone += len(items)
        self.alone += items

    def fail_all(self, items: Sequence[Item], fault: EngineFault) -> None:
        """All who wait for these get the error."""
        for item in items:
            for job, place in list(item.waiting):
                if isinstance(fault, (BadVectorError, InputTooLongError)):
                    fault.index = place
                self._fail(job, fault)
