"""A long run at a share of what the gateway can do: memory flat, no error, p99 stable.

    .venv/bin/python bench/gateway_soak.py [--minutes 60] [--load 0.8] [--cpu N] [--out soak.jsonl]
    .venv/bin/python bench/gateway_soak.py --judge soak.jsonl

First the capacity for this mix of requests, by clients that ask again at once. Then requests arrive as a Poisson
process at that share of it, whether earlier ones were answered or not. Latency counts from arrival. The mix:
single texts and lists, short and long, Chinese and English, jobs in the bulk lane, wrong requests and too long texts
(each must get its 4xx), and clients that leave. Each minute becomes a line of the file at once, so a run that was
broken off can be judged too. Exit code 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

import uvloop
from chosen import add_arguments, choose_from
from running import Running, gateway, open_files, rss_mib
from sentences import distinct, sentences

CAPACITY_SECONDS, CLIENTS = 30.0, 16
IDLE_SECONDS = 20.0  # a connection that waited so long is opened anew
WINDOW_MINUTES = 10
P99_FACTOR = 1.5  # of a window over the median of all windows
GROWTH_MIB, GROWTH = 2.0, 0.02  # of memory over the judged part: the larger of both
MORE_FILES = 8


@dataclass(frozen=True)
class Ask:
    """One request. ``wanted`` is the only right status; ``leaves``: the client goes after so many seconds."""

    kind: str
    body: bytes
    wanted: int = 200
    lane: str = ""
    leaves: float | None = None


def mix(texts: Iterator[str], dice: random.Random) -> Iterator[Ask]:
    """An endless stream of requests of all kinds."""
    kinds = {"single": 70, "list": 14, "job": 2, "long": 5, "leaves": 4, "too long": 2, "wrong": 2, "no json": 1}
    names, weights = list(kinds), list(kinds.values())
    while True:
        kind = dice.choices(names, weights)[0]
        one, encoding = next(texts), dice.choice(("float", "base64"))
        if kind == "no json":
            yield Ask(kind, b'{"input": "', 400)
        elif kind == "wrong":
            yield Ask(kind, _body(one, encoding, model="another"), 404)
        elif kind == "too long":
            yield Ask(kind, _body(" ".join(next(texts) for _ in range(100)), encoding), 400)
        elif kind == "leaves":
            yield Ask(kind, _body(one, encoding), leaves=dice.expovariate(200))
        elif kind == "long":
            yield Ask(kind, _body(" ".join(next(texts) for _ in range(3))[:400], encoding, truncate="end"))
        else:
            size = {"single": 1, "list": dice.randint(2, 16), "job": 64}[kind]
            many = [one, *(next(texts) for _ in range(size - 1))]
            yield Ask(kind, _body(many if size > 1 else one, encoding), lane="bulk" if kind == "job" else "")


def _body(texts: str | list[str], encoding: str, **more: str) -> bytes:
    return json.dumps({"input": texts, "encoding_format": encoding, **more}, ensure_ascii=False).encode()


@dataclass
class Minute:
    """What came of one minute. Latencies in milliseconds, of single texts; memory in MiB."""

    minute: int
    requests: int = 0
    rate: float = 0.0
    p50: float = 0.0
    p99: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)
    expected: dict[str, int] = field(default_factory=dict)
    gateway_mib: float = 0.0
    engine_mib: float = 0.0
    gateway_files: int = 0
    engine_files: int = 0
    single_ms: list[float] = field(default_factory=list)


class Client:
    """Kept connections to one port; what came of the requests."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.begin()

    def begin(self) -> None:
        """Count from nothing."""
        self.done, self.single_ms = 0, list[float]()
        self.errors, self.expected = Counter[str](), Counter[str]()

    async def run(self, ask: Ask) -> None:
        """Ask, and count what came of it; never raises."""
        began = time.perf_counter()
        try:
            status = await asyncio.wait_for(self._ask(ask), 60)
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            self.errors[f"{ask.kind}: {type(error).__name__}"] += 1
            return
        self.done += 1
        if status != (0 if ask.leaves is not None else ask.wanted):
            self.errors[f"{ask.kind}: {status}"] += 1
        elif ask.leaves is not None or ask.wanted != 200:
            self.expected[f"{ask.kind}: {status or 'left'}"] += 1
        elif ask.kind == "single":
            self.single_ms.append((time.perf_counter() - began) * 1e3)

    async def _ask(self, ask: Ask) -> int:
        """The status; 0 where we left."""
        reader, writer = self._take() or await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        try:
            lane = f"X-Sampan-Lane: {ask.lane}\r\n" if ask.lane else ""
            head = f"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\n{lane}Content-Length: {len(ask.body)}\r\n\r\n"
            writer.write(head.encode() + ask.body)
            if ask.leaves is not None:
                await asyncio.sleep(ask.leaves)
                writer.close()
                return 0
            found = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(found.split(b"content-length:")[1].split(b"\r\n")[0]))
        except BaseException:
            writer.close()
            raise
        if b"connection: close" in found:
            writer.close()
        else:
            self._idle.append((time.monotonic(), reader, writer))
        return int(found.split(b" ", 2)[1])

    def _take(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and not reader.at_eof():
                return reader, writer
            writer.close()
        return None


async def capacity(client: Client, asks: Iterator[Ask], seconds: float) -> float:
    """Requests a second: the lowest of three measurements, since what else the machine does may come again."""
    return min([await _answered(client, asks, seconds / 3) for _ in range(3)])


async def _answered(client: Client, asks: Iterator[Ask], seconds: float) -> float:
    until, before = time.monotonic() + seconds, client.done

    async def ask_again() -> None:
        while time.monotonic() < until:
            await client.run(next(asks))

    await asyncio.gather(*(ask_again() for _ in range(CLIENTS)))
    return (client.done - before) / seconds


async def minute_of(client: Client, asks: Iterator[Ask], rate: float, dice: random.Random, seconds: float) -> None:
    """Arrivals for so long; returns when all were answered or counted as errors."""
    begun, running = time.monotonic(), set[asyncio.Task[None]]()
    at = 0.0
    while (at := at + dice.expovariate(rate)) < seconds:
        wait = begun + at - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.ensure_future(client.run(next(asks)))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.sleep(max(0.0, begun + seconds - time.monotonic()))


async def soak(running: Running, given: argparse.Namespace, out: TextIO) -> None:
    """All minutes, each written as soon as it is over."""
    dice = random.Random(11)  # noqa: S311  (the same arrivals every time, not a secret)
    asks, client = mix(distinct(sentences()), dice), Client(running.port)
    most = await capacity(client, asks, given.capacity_seconds)
    rate = given.load * most
    _write(out, {"capacity": round(most, 1), "rate": round(rate, 1), "errors": dict(client.errors)})
    for number in range(1, given.minutes + 1):
        client.begin()
        began = time.monotonic()
        await minute_of(client, asks, rate, dice, 60.0)
        _write(out, asdict(_minute(number, client, running, time.monotonic() - began)))


def _minute(number: int, client: Client, running: Running, seconds: float) -> Minute:
    places = statistics.quantiles(client.single_ms, n=100) if len(client.single_ms) > 1 else [0.0] * 99
    engine = running.engine_pid
    return Minute(
        number,
        client.done,
        round(client.done / seconds, 1),
        round(places[49], 2),
        round(places[98], 2),
        dict(client.errors),
        dict(client.expected),
        round(rss_mib(running.pid), 2),
        round(rss_mib(engine), 2),
        open_files(running.pid),
        open_files(engine),
        [round(each, 2) for each in client.single_ms],
    )


def _write(out: TextIO, line: dict[str, object]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()
    print({name: value for name, value in line.items() if name != "single_ms"}, flush=True)


def judge(path: Path) -> bool:
    """Print the verdict over a file; True where all limits are met."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    minutes = [Minute(**line) for line in lines if "minute" in line]
    if len(minutes) < 2:
        raise SystemExit("fewer than two minutes")
    verdicts = [*_memory(minutes), _files(minutes), _errors(minutes), _stable(minutes)]
    total, expected = sum(each.requests for each in minutes), Counter[str]()
    for each in minutes:
        expected.update(each.expected)
    print(f"\n{len(minutes)} minutes, {total} requests; as they must: {dict(expected)}")
    for ok, text in verdicts:
        print(f"{'ok    ' if ok else 'MISSED'} {text}")
    return all(ok for ok, _ in verdicts)


def _memory(minutes: list[Minute]) -> Iterator[tuple[bool, str]]:
    """The line of least squares through the last three quarters."""
    judged = minutes[len(minutes) // 4 :]
    for name in ("gateway_mib", "engine_mib"):
        sizes = [float(getattr(each, name)) for each in judged]
        times = [float(each.minute) for each in judged]
        slope = statistics.linear_regression(times, sizes).slope if len(judged) > 1 else 0.0
        growth, limit = slope * len(judged), max(GROWTH_MIB, GROWTH * sizes[0])
        text = f"{name}: {sizes[0]:.1f} to {sizes[-1]:.1f}, {slope * 60:+.2f} MiB/hour"
        yield growth <= limit, f"{text}, grew {growth:+.2f} in {len(judged)} minutes (limit {limit:.1f})"


def _files(minutes: list[Minute]) -> tuple[bool, str]:
    quarter = max(1, len(minutes) // 4)
    sums = [each.gateway_files + each.engine_files for each in minutes]
    early, late = statistics.median(sums[quarter : 2 * quarter] or sums[:1]), statistics.median(sums[-quarter:])
    return late <= early + MORE_FILES, f"open files: {early:g} early, {late:g} late (limit +{MORE_FILES})"


def _errors(minutes: list[Minute]) -> tuple[bool, str]:
    errors = Counter[str]()
    for each in minutes:
        errors.update(each.errors)
    return not errors, f"errors: {dict(errors) or 'none'}"


def _stable(minutes: list[Minute]) -> tuple[bool, str]:
    size = min(WINDOW_MINUTES, max(1, len(minutes) // 2))
    windows = [minutes[start : start + size] for start in range(0, len(minutes) - size + 1, size)]
    found = []
    for window in windows:
        times = list(itertools.chain.from_iterable(each.single_ms for each in window))
        found.append(statistics.quantiles(times, n=100)[98])
    usual = statistics.median(found)
    shown = ", ".join(f"{each:.1f}" for each in found)
    text = f"p99 of single texts by {size} minutes, ms: {shown} (limit {P99_FACTOR:g} times the median)"
    return max(found) <= P99_FACTOR * usual, text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add_arguments(parser)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--load", type=float, default=0.8, help="share of the capacity")
    parser.add_argument("--cpu", type=int, help="gateway, engine and clients on this CPU only")
    parser.add_argument("--threads", type=int, default=1, help="of the engine")
    parser.add_argument("--capacity-seconds", type=float, default=CAPACITY_SECONDS)
    parser.add_argument("--out", type=Path, default=Path("soak.jsonl"))
    parser.add_argument("--judge", type=Path, help="only the verdict over a file of an earlier run")
    given = parser.parse_args()
    if given.judge is not None:
        return 0 if judge(given.judge) else 1
    if given.cpu is not None:
        os.sched_setaffinity(0, {given.cpu})
    chosen = choose_from(given)
    chosen.show()
    with given.out.open("w", encoding="utf-8") as out, gateway(chosen, given.threads) as running:
        uvloop.run(soak(running, given, out))
    met = judge(given.out)
    print("limits met" if met else "LIMIT MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
