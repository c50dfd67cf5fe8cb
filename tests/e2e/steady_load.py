"""Clients that ask without pause, inside a machine: half over kept connections, half over a new one each time.

Words: port, how many of each kind, the file whose coming ends them, and a key or nothing. Prints what came, as JSON.
"""

from __future__ import annotations

import asyncio
import collections
import json
import sys
from pathlib import Path

import aiohttp

Counts = collections.Counter[str]


async def _client(port: int, stop: Path, key: str, found: Counts, *, kept: bool) -> None:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    while not stop.exists():
        connector = aiohttp.TCPConnector(force_close=not kept)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(60)) as session:
            for _ in range(100 if kept else 1):
                if not stop.exists():
                    found[await _ask(session, port, headers)] += 1


async def _ask(session: aiohttp.ClientSession, port: int, headers: dict[str, str]) -> str:
    try:
        url = f"http://127.0.0.1:{port}/v1/embeddings"
        async with session.post(url, json={"input": "hello"}, headers=headers) as response:
            await response.read()
            return str(response.status)
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        return f"{type(error).__name__}: {error}"


async def _main(port: str, clients: str, stop: str, key: str = "") -> None:
    found: Counts = collections.Counter()
    tasks = [
        asyncio.ensure_future(_client(int(port), Path(stop), key, found, kept=kept))
        for kept in (True, False)
        for _ in range(int(clients))
    ]
    await asyncio.gather(*tasks)
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
