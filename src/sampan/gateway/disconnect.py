"""Work for a client that may leave: when it does, the work is cancelled."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import TypeVar

from starlette.types import Receive

T = TypeVar("T")
# Most short texts are answered before: they need no watcher, which would cost as much as the rest of their handling.
_WATCH_AFTER_SECONDS = 0.02


class ClientGoneError(Exception):
    """The client closed its connection; nobody reads an answer."""


async def unless_client_leaves(receive: Receive, work: Coroutine[object, object, T]) -> T:
    """The result of ``work``. Raises ClientGoneError, with the work cancelled and ended, where the client leaves.

    The body must have been read: what ``receive`` gives after it is only ``http.disconnect``.
    """
    watcher = _Watcher(receive)
    try:
        return await work
    except asyncio.CancelledError:
        if watcher.client_left:
            raise ClientGoneError from None
        raise
    finally:
        watcher.end()


class _Watcher:
    """Cancels the task that made it when the client leaves."""

    def __init__(self, receive: Receive) -> None:
        self.client_left = False
        self._receive = receive
        self._owner = asyncio.current_task()
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_WATCH_AFTER_SECONDS, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._owner is not None:
            self.client_left = True
            self._owner.cancel()

    def end(self) -> None:
        """Stop watching; a cancellation that was ours is taken back."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        if self.client_left and self._owner is not None and sys.version_info >= (3, 11):
            self._owner.uncancel()
