"""Work for a client that may leave: when it does, the work is cancelled."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import TypeVar

from sampan.gateway.call import Call
from sampan.gateway.engine import DeadlineError

T = TypeVar("T")
# Most short texts are answered before: they need no watcher, which would cost as much as the rest of their handling.
_WATCH_AFTER_SECONDS = 0.02


class ClientGoneError(Exception):
    """The client closed its connection; nobody reads an answer."""


async def unless_client_leaves(call: Call, work: Coroutine[object, object, T]) -> T:
    """The result of ``work``. Raises ClientGoneError, with the work cancelled and ended, where the client leaves, and
    DeadlineError where its time is over.

    The body must have been read: what ``receive`` gives after it is only ``http.disconnect``.
    """
    watcher = _Watcher(call)
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

    def __init__(self, call: Call) -> None:
        self.reason: Exception | None = None
        self._call = call
        self._owner = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._alarm = self._loop.call_later(_WATCH_AFTER_SECONDS, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._watch())
        if self._call.ask.deadline is not None:
            self._alarm = self._loop.call_at(self._call.ask.deadline, self._break_off, DeadlineError())

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
        self._alarm.cancel()
        if self._task is not None:
            self._task.cancel()
        if self.reason is not None and self._owner is not None and sys.version_info >= (3, 11):
            self._owner.uncancel()
