"""Throughput and latency under load: the gateway, and llama-server reached directly with two sets of flags.

    .venv/bin/python bench/gateway_throughput.py [--engine FILE] [--weights FILE.gguf] [--seconds S] [--rounds N]

Three servers over the same weights, measured in turn: llama-server with flags as they are often published
(`-c 8192 -b 64 -np 2`), llama-server with the flags that sampan plans, and the gateway over the latter. Texts are
sentences of this project's own documents, Chinese and English, at most 60 tokens, each sent once. Then: p99 of one
interactive client, alone and while a job of many texts runs. Exit code 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from gateway_overhead import cpu_ms, newest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
PUBLISHED = "-c 8192 -b 64 -np 2"
PLANNED = "-c 512 -b 512 -ub 512 -np 8 -kvu"
CLIENTS = (1, 8, 64, 256)
LIMITS = {("planned", 8): 1.1, ("planned", 64): 1.1, ("planned", 256): 1.1, ("planned", 1): 0.95}
LIMITS |= {("published", 8): 1.4, ("published", 64): 1.4, ("published", 256): 1.4}
LIMIT_P99 = 3.0
LONGEST_ZH, LONGEST_EN = 50, 160  # characters: below 60 tokens


def sentences() -> list[str]:
    """Real sentences with their real lengths, shuffled the same way every time."""
    found: set[str] = set()
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```|[`*|#>\[\]()]", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for sentence in re.split(r"(?<=[.。；;！!？?])\s*|\n+", text):
            words = " ".join(sentence.split())
            if 4 <= len(words) <= (LONGEST_EN if words.isascii() else LONGEST_ZH):
                found.add(words)
    texts = sorted(found)
    random.Random(7).shuffle(texts)  # noqa: S311  (a fixed order, not a secret)
    return texts


@dataclass
class Server:
    """One that answers on a TCP port. ``cpu``: its processes' milliseconds for each text, by clients."""

    name: str
    port: int
    pids: tuple[int, ...]
    cpu: dict[int, list[float]] = field(default_factory=dict)
    rates: dict[int, list[float]] = field(default_factory=dict)
    times: dict[int, list[float]] = field(default_factory=dict)


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes, lane: str = "") -> bool:
    """One request on a kept connection; False where the server closes it after the answer. Raises SystemExit."""
    more = f"X-Sampan-Lane: {lane}\r\n" if lane else ""
    writer.write(
        f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body
    )
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
    answer = await reader.readexactly(length)
    if b" 200 " not in head[:16]:
        raise SystemExit(f"not answered: {head!r} {answer[:300]!r}")
    return b"connection: close" not in head


class Connection:
    """Opened again when the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._pair: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, texts: list[str], lane: str = "") -> float:
        """Seconds."""
        body = json.dumps({"input": texts, "encoding_format": "base64"}).encode()
        began = time.perf_counter()
        for attempt in (1, 2):
            self._pair = self._pair or await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
            try:
                kept = await request(*self._pair, body, lane)
                break
            except (asyncio.IncompleteReadError, ConnectionError):
                self._pair = None
                if attempt == 2:
                    raise
        if not kept and self._pair:
            self._pair[1].close()
            self._pair = None
        return time.perf_counter() - began


async def load(port: int, clients: int, seconds: float, texts: Iterator[str]) -> tuple[float, list[float]]:
    """Texts a second, and the seconds of each."""
    until = time.perf_counter() + seconds
    times: list[float] = []

    async def client() -> None:
        connection = Connection(port)
        while time.perf_counter() < until:
            times.append(await connection.ask([next(texts)]))

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return len(times) / (time.perf_counter() - began), times


def measure(servers: list[Server], seconds: float, rounds: int, texts: Iterator[str]) -> None:
    for clients in CLIENTS:
        for server in servers:
            uvloop.run(load(server.port, clients, 0.5, texts))
        for turn in range(rounds):
            for server in servers if turn % 2 else servers[::-1]:
                before = sum(map(cpu_ms, server.pids))
                rate, times = uvloop.run(load(server.port, clients, seconds, texts))
                server.cpu.setdefault(clients, []).append((sum(map(cpu_ms, server.pids)) - before) / len(times))
                server.rates.setdefault(clients, []).append(rate)
                server.times.setdefault(clients, []).extend(times)
                print(f"  {clients} clients, {server.name}: {rate:.1f} texts/s", file=sys.stderr, flush=True)


def show(servers: list[Server]) -> bool:
    """Print the table; True where all limits are met."""
    gateway, met = servers[-1], True
    heads = f"{'clients':<9}{'server':<11}{'texts/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms':>8}"
    print(f"\n{heads}{'gateway is':>12}{'limit':>7}")
    for clients, server in itertools.product(CLIENTS, servers):
        rate = statistics.median(server.rates[clients])
        places = statistics.quantiles(server.times[clients], n=100)
        ratio = statistics.median(gateway.rates[clients]) / rate
        limit = LIMITS.get((server.name, clients))
        met = met and (limit is None or ratio >= limit)
        shown = f"{ratio:>11.2f}x{limit or '':>7}" if server is not gateway else ""
        cpu = statistics.median(server.cpu[clients])
        line = f"{clients:<9}{server.name:<11}{rate:>9.1f}{places[49] * 1e3:>9.2f}{places[98] * 1e3:>9.2f}"
        print(f"{line}{cpu:>8.3f}{shown}")
    return met


async def beside_bulk(port: int, count: int, texts: Iterator[str]) -> tuple[float, float, float]:
    """p99 of one interactive client alone and beside a job of ``count`` texts, seconds; the job's texts a second."""
    _, alone = await load(port, 1, 5.0, texts)
    done = asyncio.Event()
    beside: list[float] = []

    async def job() -> float:
        began = time.perf_counter()
        connection = Connection(port)
        for start in range(0, count, 500):
            await connection.ask([next(texts) for _ in range(min(500, count - start))], "bulk")
        done.set()
        return count / (time.perf_counter() - began)

    async def person() -> None:
        connection = Connection(port)
        while not done.is_set():
            beside.append(await connection.ask([next(texts)]))
            await asyncio.sleep(0.01)

    rate, _ = await asyncio.gather(job(), person())
    return statistics.quantiles(alone, n=100)[98], statistics.quantiles(beside, n=100)[98], rate


@contextmanager
def direct(name: str, engine: Path, weights: Path, flags: str, threads: int) -> Iterator[Server]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [engine, "-m", weights, *flags.split(), "-t", str(threads), "-tb", str(threads), "--embeddings"]
    words += ["--pooling", "mean", "--port", str(port), "--log-verbosity", "0"]
    with tempfile.TemporaryFile() as log, subprocess.Popen([*map(str, words)], stdout=log, stderr=log) as process:
        try:
            wait_for(port)
            yield Server(name, port, (process.pid,))
        finally:
            process.terminate()


def wait_for(port: int) -> None:
    import urllib.error
    import urllib.request

    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    raise SystemExit("llama-server did not start")


def distinct(texts: list[str]) -> Iterator[str]:
    """Each text once; after all have been sent, again with a number, so that none ever comes twice."""
    for turn in itertools.count():
        for text in texts:
            yield text if not turn else f"{turn} {text}"


def main() -> int:
    from tests.fakes.served import served

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--engine", type=Path, default=newest("llama-server"))
    parser.add_argument("--weights", type=Path, default=newest("*MiniLM*.gguf"))
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bulk", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.engine is None or given.weights is None:
        raise SystemExit("no engine or weights in the store: run `sampan ship --target this` first, or name them")
    texts = distinct(sentences())
    print(f"engine {given.engine}\nweights {given.weights}")
    print(f"load before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs")
    with ExitStack() as stack:
        servers = [
            stack.enter_context(direct(name, given.engine, given.weights, flags, given.threads))
            for name, flags in (("published", PUBLISHED), ("planned", PLANNED))
        ]
        limits = {"queue_requests": 1024}
        running = stack.enter_context(
            served(engine=given.engine, weights=given.weights, limits=limits, threads=given.threads)
        )
        servers.append(Server("gateway", running.port, (running.process.pid, running.engine_pid)))
        measure(servers, given.seconds, given.rounds, texts)
        met = show(servers)
        alone, beside, rate = uvloop.run(beside_bulk(running.port, given.bulk, texts))
    print(f"\none interactive client, p99: alone {alone * 1e3:.1f} ms, beside the job {beside * 1e3:.1f} ms")
    print(f"ratio {beside / alone:.2f} (limit {LIMIT_P99:g}); the job of {given.bulk} texts: {rate:.1f} texts/s")
    met = met and beside / alone <= LIMIT_P99
    print("limits met" if met else "LIMIT MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
