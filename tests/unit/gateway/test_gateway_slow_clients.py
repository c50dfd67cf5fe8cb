"""Clients that are slow on purpose, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from tests.unit.gateway.engines import ScriptedEngine

from sampan.gateway import bodies
from sampan.gateway.app import create_app
from sampan.gateway.http_server import GuardedProtocol, make_server
from sampan.gateway.settings import Limits, ServedModel

ASK = b'POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{"input": "a"}'


@contextlib.asynccontextmanager
async def served(limits: Limits = Limits()) -> AsyncIterator[int]:  # noqa: B008
    server = make_server(create_app(ScriptedEngine(), ServedModel("m", "embedding", 8), limits), 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.ensure_future(server.serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


async def answered(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.readuntil(b"\r\n"), 5)


@pytest.mark.parametrize("said", [b"", b"GET /health HTTP/1.1\r\nX-Slow: "])
async def test_headers_that_never_end_are_hung_up_on(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardedProtocol, "header_seconds", 0.1)
    async with served() as port:
        slow_reader, slow = await asyncio.open_connection("127.0.0.1", port)
        slow.write(said)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(slow_reader.read(), 5) == b""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):  # the limit holds for headers, not for a connection that waits between requests
            writer.write(ASK)
            assert b" 200 " in await answered(reader)
            await asyncio.sleep(0.06)
            await asyncio.wait_for(reader.read(65536), 5)
        writer.close()


async def test_endless_headers_are_hung_up_on() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            writer.write(b"GET / HTTP/1.1\r\n")
            for number in range(2000):
                writer.write(b"X-%d: " % number + b"a" * 100 + b"\r\n")
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_a_body_that_dribbles_gets_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_SECONDS", 0.1)
    async with served(Limits(body_bytes=1000)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ASK[:-3])
        assert b" 408 " in await answered(reader)
        writer.close()


async def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 10485760\r\n\r\n")
        assert b" 413 " in await answered(reader)
        assert b"connection: close" in await asyncio.wait_for(reader.read(4096), 5)
        writer.close()
