"""A client for benchmarks, the same for every server: HTTP/1.1 over kept connections, answers read but not parsed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> tuple[bool, bytes]:
    """One request: False where the server closes the connection after the answer; the answer. Raises SystemExit."""
    writer.write(message)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
    answer = await reader.readexactly(length)
    if b" 200 " not in head[:16]:
        raise SystemExit(f"not answered: {head!r} {answer[:300]!r}")
    return b"connection: close" not in head, answer


class Connection:
    """Opened again when the server closes it."""

    def __init__(self, port: int, encoding: str = "base64") -> None:
        self._port, self._encoding = port, encoding
        self._pair: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, texts: list[str], lane: str = "") -> float:
        """Seconds."""
        return (await self.answer(texts, lane))[0]

    async def answer(self, texts: list[str], lane: str = "") -> tuple[float, bytes]:
        """Seconds, and the answer's body."""
        message = self._message(texts, lane)
        began = time.perf_counter()
        for attempt in (1, 2):
            self._pair = self._pair or await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
            try:
                kept, answer = await request(*self._pair, message)
                break
            except (asyncio.IncompleteReadError, ConnectionError):
                self._pair = None
                if attempt == 2:
                    raise
        if not kept and self._pair:
            self._pair[1].close()
            self._pair = None
        return time.perf_counter() - began, answer

    def _message(self, texts: list[str], lane: str) -> bytes:
        body = json.dumps({"input": texts, "encoding_format": self._encoding}).encode()
        more = f"X-Sampan-Lane: {lane}\r\n" if lane else ""
        head = f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{more}"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def load(
    port: int, clients: int, seconds: float, texts: Iterator[str], *, encoding: str = "base64", each: int = 1
) -> tuple[float, list[float]]:
    """Texts a second, and the seconds of each request of ``each`` texts."""
    until = time.perf_counter() + seconds
    times: list[float] = []

    async def client() -> None:
        connection = Connection(port, encoding)
        while time.perf_counter() < until:
            times.append(await connection.ask([next(texts) for _ in range(each)]))

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return each * len(times) / (time.perf_counter() - began), times
