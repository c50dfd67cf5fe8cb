"""Work for a client that may leave: when it does, the work is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TypeVar

from starlette.types import Receive

T = TypeVar("T")


class ClientGoneError(Exception):
    """The client closed its connection; nobody reads an answer."""


async def unless_client_leaves(receive: Receive, work: Coroutine[object, object, T]) -> T:
    """The result of ``work``. Raises ClientGoneError, with the work cancelled and ended, where the client leaves.

    The body must have been read: what ``receive`` gives after it is only ``http.disconnect``.
    """
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGoneError
    finally:
        watch.cancel()
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
