"""How often the kernel is asked to send: once for a whole answer, as often as there are pieces for a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from sampan.gateway.http_server import GuardedProtocol
from sampan.gateway.replies import Reply

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """Keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        return

    def abort(self) -> None:
        return

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return

    def set_protocol(self, _protocol: asyncio.BaseProtocol) -> None:
        return


def whole(body: bytes) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await Reply(body).send(send)

    return app


async def in_parts(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Of a declared length, in three messages."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"ab", "more_body": True})
    await send({"type": "http.response.body", "body": b"cd", "more_body": False})


async def streamed(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for piece in (b"a", b"b", b""):
        await send({"type": "http.response.body", "body": piece, "more_body": bool(piece)})


async def writes_of(app: ASGIApp, said: bytes, done: Callable[[bytes], bool]) -> list[bytes]:
    config = uvicorn.Config(app, http=GuardedProtocol, ws="none", log_config=None, access_log=False)
    config.load()
    config.loaded_app = app
    protocol = GuardedProtocol(config, ServerState(), {})
    wire = Wire()
    protocol.connection_made(wire)
    protocol.data_received(said)
    for _ in range(50):
        await asyncio.sleep(0)
        if done(b"".join(wire.writes)):
            break
    protocol.connection_lost(None)
    return wire.writes


@pytest.mark.parametrize(
    ("app", "said", "end", "count"),
    [
        (whole(b"body"), GET, b"\r\n\r\nbody", 1),
        (whole(b""), GET, b"\r\n\r\n", 1),
        (whole(b"body"), GET.replace(b"GET", b"HEAD"), b"\r\n\r\n", 1),
        (whole(b"HTTP/1.1 200 OK"), GET, b"\r\n\r\nHTTP/1.1 200 OK", 1),
        (in_parts, GET, b"\r\n\r\nabcd", 1),
        (streamed, GET, b"0\r\n\r\n", 4),
    ],
)
async def test_an_answer_of_declared_length_is_one_write(app: ASGIApp, said: bytes, end: bytes, count: int) -> None:
    writes = await writes_of(app, said, lambda sent: sent.endswith(end))
    assert len(writes) == count
    assert b"".join(writes).endswith(end)


async def test_requests_sent_together_are_answered_whole() -> None:
    writes = await writes_of(whole(b"body"), GET * 3, lambda sent: sent.count(b"body") == 3)
    assert b"".join(writes).count(b"\r\n\r\nbody") == 3
