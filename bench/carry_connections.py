"""Do several connections carry faster than one? A file in as many pieces, over a line with a delay and a rate.

    .venv/bin/python bench/carry_connections.py [MIB]

A real OpenSSH server on loopback; the line between is a proxy that gives every byte on after half the round trip, all
connections together at no more than the rate. It models no loss of packets: see ADR 0022.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from tests.fakes.ssh_server import Server, running

from sampan.carry.send import Trip
from sampan.edge import carrier
from sampan.edge.progress import SilentProgress

LINES = (
    (0.0, None),
    (0.05, None),
    (0.05, 12.5e6),
    (0.2, 12.5e6),
    (0.2, 1.25e6),
)  # seconds to and fro, bytes a second


class Line:
    """``echo``: seconds to and fro; ``rate``: bytes a second of all connections together."""

    def __init__(self, echo: float, rate: float | None, port: int) -> None:
        self._delay, self._rate, self._port, self._free = echo / 2, rate, port, 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, both ways."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        with suppress(asyncio.CancelledError):  # the line is taken down
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer), return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        late = asyncio.ensure_future(self._late(queue, writer))
        while data := await reader.read(64 << 10):
            now = time.monotonic()
            if self._rate:
                self._free = max(self._free, now) + len(data) / self._rate
                await asyncio.sleep(self._free - now)
            queue.put_nowait((time.monotonic() + self._delay, data))
        queue.put_nowait((0.0, b""))
        await late

    @staticmethod
    async def _late(queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            due, data = await queue.get()
            if not data:
                break
            await asyncio.sleep(due - time.monotonic())
            writer.write(data)
            with suppress(OSError):
                await writer.drain()
        writer.close()


@asynccontextmanager
async def line(echo: float, rate: float | None, port: int) -> AsyncIterator[int]:
    """The port to connect to."""
    server = await asyncio.start_server(Line(echo, rate, port).serve, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def carried(pieces: list[Path], to: Path, server: Server, echo: float, rate: float | None) -> float:
    """Seconds until all are there and proved."""
    async with line(echo, rate, server.port) as port:
        settings = replace(server.settings(), connect_seconds=60)
        started = time.perf_counter()

        async def one(piece: Path) -> None:
            trip = Trip(piece, str(to / f"{piece.name}.{os.urandom(4).hex()}"), "there", SilentProgress())
            await trip.run(lambda: carrier.opened(server.address(port), settings))

        await asyncio.gather(*map(one, pieces))
        return time.perf_counter() - started


def main(mebibytes: int = 64) -> None:
    """Print a row for each line."""
    with tempfile.TemporaryDirectory() as name, running(Path(name), "Subsystem sftp internal-sftp") as server:
        print("to and fro      line    " + "".join(f"{ways} connection(s)  " for ways in (1, 2, 4)))
        for echo, rate in LINES:
            size = (mebibytes << 20) // (8 if rate and rate < 2e6 else 1)
            speeds = []
            for ways in (1, 2, 4):
                pieces = [Path(name) / f"{ways}.{number}" for number in range(ways)]
                for piece in pieces:
                    piece.write_bytes(os.urandom(size // ways))
                seconds = asyncio.run(carried(pieces, Path(name), server, echo, rate))
                speeds.append(f"{size / 1e6 / seconds:9.2f} MB/s  ")
            shown = f"{rate / 1e6:6.2f} MB/s" if rate else "   no limit"
            print(f"{echo * 1000:7.0f} ms {shown}  {''.join(speeds)}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
