"""Turns for generations: as many at a time as the engine has slots, interactive ones first.

Beyond its slots an engine would only queue by itself, where nobody can be dropped for a missed deadline.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sampan.gateway.engine import Ask, DeadlineError, Generation, Lane

_POLL_SECONDS = 0.02


class Turns:
    """``slots`` turns at a time."""

    def __init__(self, slots: int, ageing_seconds: float) -> None:
        self._slots = slots
        self._free = slots
        self._held = False
        self._ageing = ageing_seconds
        self._waiting: dict[Lane, deque[tuple[float, asyncio.Future[None]]]] = {lane: deque() for lane in Lane}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(len(lane) for lane in self._waiting.values())

    async def take(self, ask: Ask) -> None:
        """Wait for a turn. Raises DeadlineError where none comes in time."""
        if self._free > 0 and not self._held:
            self._free -= 1
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        lane = self._waiting[ask.lane]
        entry = (loop.time(), turn)
        lane.append(entry)
        alarm = None if ask.deadline is None else loop.call_at(ask.deadline, _too_late, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give()  # the turn came at the same moment
            raise
        finally:
            if alarm is not None:
                alarm.cancel()
            if entry in lane:
                lane.remove(entry)

    @asynccontextmanager
    async def none_taken(self, seconds: float) -> AsyncIterator[None]:
        """No new turns while the block runs; it begins when all are back, or after ``seconds``."""
        self._held = True
        until = asyncio.get_running_loop().time() + seconds
        try:
            while self._free < self._slots and asyncio.get_running_loop().time() < until:
                await asyncio.sleep(_POLL_SECONDS)
            yield
        finally:
            self._held = False
            while self._free > 0 and self.waiting:
                self._free -= 1
                self.give()

    def give(self) -> None:
        """A turn is free again."""
        if self._held:
            self._free += 1
            return
        now = asyncio.get_running_loop().time()
        people, bulk = self._waiting[Lane.INTERACTIVE], self._waiting[Lane.BULK]
        aged = bool(bulk) and (not people or bulk[0][0] + self._ageing <= min(now, people[0][0]))
        for lane in (bulk, people) if aged else (people, bulk):
            while lane:
                _, turn = lane.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1


def _too_late(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_exception(DeadlineError())


class Taken:
    """A generation that gives its turn back when it is closed. See engine.Generation."""

    def __init__(self, inner: Generation, turns: Turns) -> None:
        self._inner = inner
        self._turns: Turns | None = turns

    @property
    def content_type(self) -> str:
        """See Generation."""
        return self._inner.content_type

    def chunks(self) -> AsyncIterator[bytes]:
        """See Generation."""
        return self._inner.chunks()

    async def close(self) -> None:
        """See Generation."""
        turns, self._turns = self._turns, None
        try:
            await self._inner.close()
        finally:
            if turns is not None:
                turns.give()
