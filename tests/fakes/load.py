"""Clients that ask a running service without pause."""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Callable

import aiohttp
from tests.fakes.served import Served

LOST = "lost"  # no answer at all
Statuses = collections.Counter[object]


async def ask(
    session: aiohttp.ClientSession, url: str, body: object, headers: dict[str, str] | None = None
) -> object:
    """The status, or how it was lost."""
    try:
        async with session.post(f"{url}/v1/embeddings", json=body, headers=headers) as response:
            await response.read()
            return response.status
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        return f"{LOST}: {type(error).__name__}"


class Load:
    """Clients that ask without pause until stopped."""

    def __init__(
        self, service: Served, clients: int, headers: dict[str, str] | None = None, timeout: float = 20
    ) -> None:
        self.statuses: Statuses = collections.Counter()
        self._url = service.url
        self._going = True
        self._headers = headers
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._tasks = [asyncio.ensure_future(self._client(number)) for number in range(clients)]

    async def _client(self, number: int) -> None:
        async with aiohttp.ClientSession(timeout=self._timeout) as session:
            count = 0
            while self._going:
                text = f"please wait {number} {count}"
                self.statuses[await ask(session, self._url, {"input": text}, self._headers)] += 1
                count += 1

    async def stop(self) -> Statuses:
        """What they were answered."""
        self._going = False
        await asyncio.gather(*self._tasks)
        return self.statuses


async def until(true: Callable[[], bool], seconds: float) -> float:
    """Seconds until it is true. Raises AssertionError."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if await asyncio.to_thread(true):
            return time.monotonic() - began
        await asyncio.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")
