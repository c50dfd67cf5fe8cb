"""Connections that the engine closes: llama-server does so after a stream, after 100 requests and when idle."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sampan.gateway.engine import EngineState, EngineUnavailableError
from sampan.gateway.upstream import UnixClient

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Fickle:
    """Answers ``answered`` requests of each connection, then closes it without a word when the next one comes."""

    def __init__(self, answered: int) -> None:
        self.answered = answered
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self.answered):
            await self._read_request(reader)
            writer.write(_ANSWER)
        await self._read_request(reader)
        writer.close()

    async def _read_request(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length"))
        await reader.readexactly(length)


async def ask(folder: Path, fickle: Fickle, times: int) -> list[int]:
    path = folder / "engine.sock"
    client = UnixClient(path, lambda: EngineState.RESTARTING, 5)
    async with await asyncio.start_unix_server(fickle.serve, path):
        try:
            return [(await client.post("/v1/embeddings", b'{"input": "a"}')).status for _ in range(times)]
        finally:
            await client.close()


async def test_a_connection_closed_between_requests_costs_no_request(short_folder: Path) -> None:
    fickle = Fickle(answered=2)
    assert await ask(short_folder, fickle, 7) == [200] * 7
    assert fickle.connections == 4


async def test_an_engine_that_closes_a_fresh_connection_is_not_asked_again(short_folder: Path) -> None:
    fickle = Fickle(answered=0)  # it took the request and died of it, perhaps
    with pytest.raises(EngineUnavailableError):
        await ask(short_folder, fickle, 1)
    assert fickle.connections == 1


async def test_no_socket_is_no_engine(short_folder: Path) -> None:
    client = UnixClient(short_folder / "none.sock", lambda: EngineState.STARTING, 5)
    with pytest.raises(EngineUnavailableError) as caught:
        await client.post("/v1/embeddings", b"{}")
    assert caught.value.state is EngineState.STARTING
    assert await client.probe("/health") is None
    await client.close()
