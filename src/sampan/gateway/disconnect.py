"""Work for a client that may leave: when it does, the work is cancelled."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import TypeVar

from sampan.gateway.call import Call
from sampan.gateway.engine import DeadlineError
from sampan.gateway.replies import ClientGoneError

T = TypeVar("T")
# Most short texts are answered before: they need no watcher, which would cost as much as the rest of their handling.
_ROUND_SECONDS = 0.02


async def unless_client_leaves(call: Call, work: Coroutine[object, object, T]) -> T:
    """The result of ``work``. Raises ClientGoneError, with the work cancelled and ended, where the client leaves, and
    DeadlineError where its time is over.

    The body must have been read: what ``receive`` gives after it is only ``http.disconnect``.
    """
    watcher = _Watcher(call)
    _rounds.add(watcher)
    try:
        return await work
    except asyncio.CancelledError:
        if watcher.reason is not None:
            raise watcher.reason from None
        raise
    finally:
        watcher.end()


class _Watcher:
    """Cancels the task that made it when the client leaves, or has waited as long as it will."""

    __slots__ = ("_alarm", "_call", "_owner", "_task", "loop", "reason")

    def __init__(self, call: Call) -> None:
        self.reason: Exception | None = None
        self.loop = asyncio.get_running_loop()
        self._call = call
        self._owner = asyncio.current_task(self.loop)
        self._task: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Watch from now on."""
        self._task = asyncio.ensure_future(self._watch())
        if self._call.ask.deadline is not None:
            self._alarm = self.loop.call_at(self._call.ask.deadline, self._break_off, DeadlineError())

    async def _watch(self) -> None:
        while (await self._call.receive())["type"] != "http.disconnect":
            pass
        self._break_off(ClientGoneError())

    def _break_off(self, reason: Exception) -> None:
        if self._owner is not None and self.reason is None:
            self.reason = reason
            self._owner.cancel()

    def end(self) -> None:
        """Stop watching; a cancellation that was ours is taken back."""
        _rounds.forget(self)
        if self._alarm is not None:
            self._alarm.cancel()
        if self._task is not None:
            self._task.cancel()
        if self.reason is not None and self._owner is not None and sys.version_info >= (3, 11):
            self._owner.uncancel()


class _Rounds:
    """Lets those watchers begin that are one to two rounds old: one timer for all, instead of one a request."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._young: set[_Watcher] = set()
        self._older: set[_Watcher] = set()
        self._is_armed = False

    def add(self, watcher: _Watcher) -> None:
        """A request has begun."""
        if watcher.loop is not self._loop:  # a service has one loop; tests have many, one after another
            self._loop, self._is_armed = watcher.loop, False
            self._young, self._older = set(), set()
        self._young.add(watcher)
        if not self._is_armed:
            self._is_armed = True
            watcher.loop.call_later(_ROUND_SECONDS, self._next, watcher.loop)

    def forget(self, watcher: _Watcher) -> None:
        """It is answered."""
        self._young.discard(watcher)
        self._older.discard(watcher)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        due, self._older, self._young = self._older, self._young, set()
        for watcher in due:
            watcher.begin()
        self._is_armed = bool(self._older)
        if self._is_armed:
            loop.call_later(_ROUND_SECONDS, self._next, loop)


_rounds = _Rounds()
