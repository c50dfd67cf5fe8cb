"""Throughput and latency under load: the gateway, and llama-server reached directly with two sets of flags.

    .venv/bin/python bench/gateway_throughput.py [--weights W] [--quantization Q] [--variant V] [--seconds S]

Three servers over the same weights, measured in turn: llama-server with flags as they are often published
(`-c 8192 -b 64 -np 2`), llama-server with the flags that sampan plans, and the gateway over the latter; engine,
weights and plan are those of a bundle for this machine (``chosen.py``). Texts are
sentences of this project's own documents, Chinese and English, at most 60 tokens, each sent once. Then: p99 of one
interactive client, alone and while a job of many texts runs. Exit code 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import uvloop
from chosen import Chosen, add_arguments, choose_from
from connection import Connection, load
from running import cpu_ms, gateway, llama_server, planned_flags
from sentences import distinct, sentences

PUBLISHED = "-c 8192 -b 64 -np 2"
CLIENTS = (1, 8, 64, 256)
LIMITS = {("planned", 8): 1.1, ("planned", 64): 1.1, ("planned", 256): 1.1, ("planned", 1): 0.95}
LIMITS |= {("published", 8): 1.4, ("published", 64): 1.4, ("published", 256): 1.4}
LIMIT_P99 = 3.0


@dataclass
class Server:
    """One that answers on a TCP port. ``cpu``: its processes' milliseconds for each text, by clients."""

    name: str
    port: int
    pids: tuple[int, ...]
    cpu: dict[int, list[float]] = field(default_factory=dict)
    rates: dict[int, list[float]] = field(default_factory=dict)
    times: dict[int, list[float]] = field(default_factory=dict)


def measure(servers: list[Server], counts: Sequence[int], seconds: float, rounds: int, texts: Iterator[str]) -> None:
    for clients in counts:
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


def show(servers: list[Server], counts: Sequence[int]) -> bool:
    """Print the table; True where all limits are met."""
    gateway, met = servers[-1], True
    heads = f"{'clients':<9}{'server':<11}{'texts/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms':>8}"
    print(f"\n{heads}{'gateway is':>12}{'limit':>7}")
    for clients, server in itertools.product(counts, servers):
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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add_arguments(parser)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="*", default=CLIENTS)
    parser.add_argument("--bulk", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    chosen = choose_from(given)
    chosen.show()
    texts = distinct(sentences())
    with ExitStack() as stack:
        servers = servers_of(chosen, given.threads, stack)
        measure(servers, given.clients, given.seconds, given.rounds, texts)
        met = show(servers, given.clients)
        alone, beside, rate = uvloop.run(beside_bulk(servers[-1].port, given.bulk, texts))
    print(f"\none interactive client, p99: alone {alone * 1e3:.1f} ms, beside the job {beside * 1e3:.1f} ms")
    print(f"ratio {beside / alone:.2f} (limit {LIMIT_P99:g}); the job of {given.bulk} texts: {rate:.1f} texts/s")
    met = met and beside / alone <= LIMIT_P99
    print("limits met" if met else "LIMIT MISSED")
    return 0 if met else 1


def servers_of(chosen: Chosen, threads: int, stack: ExitStack) -> list[Server]:
    """All three, the gateway last."""
    number = str(threads)
    published = [*PUBLISHED.split(), "-t", number, "-tb", number, "--embeddings", "--pooling", "mean"]
    flags = {"published": [*published, "--log-verbosity", "0"], "planned": planned_flags(chosen, threads)}
    servers = []
    for name, words in flags.items():
        pid, port = stack.enter_context(llama_server(chosen, words))
        servers.append(Server(name, port, (pid,)))
    running = stack.enter_context(gateway(chosen, threads, {"queue_requests": 1024}))
    return [*servers, Server("gateway", running.port, (running.pid, running.engine_pid))]


if __name__ == "__main__":
    sys.exit(main())
