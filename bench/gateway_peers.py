"""The gateway beside embedding servers from PyPI: the same model, texts, client and threads, in one run.

    .venv/bin/python bench/gateway_peers.py [--quick] [--threads N] [--markdown]

sentence-transformers and fastembed (ONNX Runtime) behind FastAPI, infinity-emb and llama-cpp-python's server, each
in an environment of its own (made the first time: ``peer_servers.py``), and the engine of a bundle behind the
gateway, in several types. For each: texts a second, p50, p99 and CPU time of all its processes, with 1, 8 and 64
clients that send one text at a time, and with one that sends lists of 64; memory of all its processes afterwards; the
time from start to the first answer, files in the page cache; CPU while idle; and the lowest cosine to the float
reference of the golden texts: at least 0.99; what becomes of a text that is too long. All answer ``float``, since not
all know base64. Texts are this project's own sentences, each sent once.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvloop
from chosen import MODEL, Chosen, add_arguments, choose_from
from connection import Connection, load
from peer_servers import PEERS, Models, environment, running
from running import gateway, rss_mib
from sentences import distinct, sentences

from sampan.edge.progress import SilentProgress
from sampan.flow.onnx_import import import_onnx
from sampan.flow.tools import Tools, workshop_tools
from sampan.spec.codec import load as load_json
from sampan.spec.weights import GoldenSet
from sampan.weights import ready

LISTS = 64
LOADS = ((1, 1), (8, 1), (64, 1), (1, LISTS))  # clients, texts in each request
QUANTIZATIONS = ("F32", "auto", "Q8_0")
LEAST_COSINE = 0.99
Start = AbstractContextManager[tuple[int, int]]


@dataclass
class Server:
    """One that was started: ``ready`` in seconds, ``cosine`` the lowest, ``length`` of its first vector."""

    name: str
    precision: str
    pid: int
    port: int
    ready: float
    cosine: float = 0.0
    length: float = 0.0
    idle: float = 0.0
    rss: float = 0.0
    rates: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    times: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    cpu: dict[tuple[int, int], list[float]] = field(default_factory=dict)  # milliseconds for each text


def tree(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from tree(int(child))


async def first_answer(port: int, seconds: float = 180.0) -> float:
    """When it came. Raises SystemExit."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        try:
            await Connection(port, "float").ask(["hello"])
            return time.perf_counter()
        except (OSError, EOFError):
            await asyncio.sleep(0.02)
    raise SystemExit(f"nothing answers on port {port}")


async def vectors(port: int, texts: Sequence[str]) -> list[list[float]]:
    connection = Connection(port, "float")
    found = [json.loads((await connection.answer([text]))[1])["data"][0]["embedding"] for text in texts]
    return [each[0] if isinstance(each[0], list) else each for each in found]


def compare(server: Server, golden: GoldenSet) -> None:
    """Fill in how near its vectors are to the reference's. Raises SystemExit where it computes something else."""
    found = uvloop.run(vectors(server.port, [each.text for each in golden.embeddings]))
    lengths = [math.hypot(*vector) for vector in found]
    cosines = [
        sum(map(float.__mul__, vector, each.vector)) / (length * math.hypot(*each.vector))
        for vector, length, each in zip(found, lengths, golden.embeddings, strict=True)
    ]
    server.cosine, server.length = min(cosines), lengths[0]
    if server.cosine < LEAST_COSINE:
        raise SystemExit(f"{server.name} computes something else: cosine {server.cosine:.4f}")


def long_text(server: Server) -> str:
    """What becomes of a text that is longer than the model was trained for."""
    body = json.dumps({"input": " ".join(f"word{number % 90}" for number in range(600))}).encode()
    address = f"http://127.0.0.1:{server.port}/v1/embeddings"
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60):
            return "cut, unsaid"
    except urllib.error.HTTPError as error:
        return f"refused, {error.code}"
    except OSError as error:
        return type(error).__name__


@contextmanager
def served(chosen: Chosen, threads: int) -> Iterator[tuple[int, int]]:
    with gateway(chosen, threads, {"queue_requests": 1024}) as started:
        yield started.pid, started.port


def started(name: str, precision: str, start: Start, stack: ExitStack) -> Server:
    began = time.perf_counter()
    pid, port = stack.enter_context(start)
    return Server(name, precision, pid, port, uvloop.run(first_answer(port)) - began)


def with_graph(model: Path, tools: Tools) -> Path:
    """The folder with the same model as ONNX beside it, as fastembed wants it."""
    info, graph = import_onnx(MODEL, "f32", tools)

    def make(folder: Path) -> None:
        for path in [*model.glob("*.json"), graph / info.file_name]:
            shutil.copy2(path, folder / path.name)

    return tools.store.get_or_make("bench-onnx", {"graph": info.sha256}, make)


def servers_of(given: argparse.Namespace, stack: ExitStack) -> list[Server]:
    """All, the gateway with the planned type first. Each is started twice, so that the second finds warm files."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peers")))
    tools = workshop_tools(SilentProgress())
    chosen = [choose_from(argparse.Namespace(**{**vars(given), "quantization": each})) for each in given.types]
    planned = next((each for each, name in zip(chosen, given.types, strict=True) if name == "auto"), chosen[0])
    folder_of_model = ready.fetch(ready.find(MODEL), tools.fetcher, tools.store)
    models = Models(folder_of_model, with_graph(folder_of_model, tools), planned.path)
    planned.show()
    golden = load_json(GoldenSet, Path(planned.weights.golden_path or ""))
    starts = [("sampan", each.weights.quantization, partial(served, each, given.threads)) for each in chosen]
    for peer in PEERS:
        environment(peer)
        starts.append((peer.name, peer.precision, partial(running, peer, models, given.threads, folder / peer.name)))
    servers = []
    for name, precision, start in starts:
        with ExitStack() as once:
            started(name, precision, start(), once)
        servers.append(started(name, precision, start(), stack))
        compare(servers[-1], golden)
        print(f"  {name} {precision}: ready after {servers[-1].ready:.1f} s", file=sys.stderr, flush=True)
    return servers


def cpu_of(server: Server) -> float:
    """Milliseconds of all its processes, those of threads that have ended among them: in ticks of 10 ms."""
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in tree(server.pid)]
    return sum(int(each) for pair in ticks for each in pair) * 1e3 / os.sysconf("SC_CLK_TCK")


def measure(servers: list[Server], seconds: float, rounds: int, texts: Iterator[str]) -> None:
    """Each load for each server in turn, there and back; memory at the end, CPU while idle before."""
    before, began = [cpu_of(server) for server in servers], time.perf_counter()
    time.sleep(min(seconds, 5.0))
    for server, then in zip(servers, before, strict=True):
        server.idle = (cpu_of(server) - then) / (time.perf_counter() - began) / 10  # percent of one CPU
    for clients, each in LOADS:
        for server in servers:
            uvloop.run(load(server.port, clients, min(seconds, 1.0), texts, encoding="float", each=each))
        for turn, server in itertools.product(range(rounds), range(len(servers))):
            one = servers[server if turn % 2 else -1 - server]
            spent = cpu_of(one)
            rate, times = uvloop.run(load(one.port, clients, seconds, texts, encoding="float", each=each))
            one.cpu.setdefault((clients, each), []).append((cpu_of(one) - spent) / (each * len(times)))
            one.rates.setdefault((clients, each), []).append(rate)
            one.times.setdefault((clients, each), []).extend(times)
            print(
                f"  {clients} x {each}, {one.name} {one.precision}: {rate:.1f} texts/s", file=sys.stderr, flush=True
            )
    for server in servers:
        server.rss = sum(map(rss_mib, tree(server.pid)))


HEADS = ("server", "type", "clients", "texts each", "texts/s", "planned is", "p50 ms", "p99 ms", "CPU ms")


def rows(servers: list[Server], planned: Server) -> Iterator[tuple[str, ...]]:
    """One for each load and server; ``planned is``: the planned gateway's rate over this one's."""
    for kind, server in itertools.product(LOADS, servers):
        rate, own = (statistics.median(each.rates[kind]) for each in (server, planned))
        times = [each * 1e3 for each in server.times[kind]] * 2  # quantiles wants two
        places = statistics.quantiles(times, n=100, method="inclusive")
        ratio = "" if server is planned else f"{own / rate:.2f}x"
        cpu = statistics.median(server.cpu[kind])
        figures = (f"{rate:.1f}", ratio, f"{places[49]:.1f}", f"{places[98]:.1f}", f"{cpu:.2f}")
        yield (server.name, server.precision, str(kind[0]), str(kind[1]), *figures)


def facts(servers: list[Server]) -> Iterator[tuple[str, ...]]:
    for each in servers:
        figures = (
            f"{each.ready:.1f}",
            f"{each.rss:.0f}",
            f"{each.idle:.1f}",
            f"{each.cosine:.5f}",
            f"{each.length:.2f}",
        )
        yield (each.name, each.precision, *figures, long_text(each))


def table(heads: Sequence[str], body: Sequence[Sequence[str]], *, markdown: bool) -> str:
    if markdown:
        lines = [heads, ["---"] * len(heads), *body]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in (heads, *body))
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add_arguments(parser)
    parser.add_argument("--types", nargs="*", default=QUANTIZATIONS, help="of the gateway's weights (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of every engine (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round of a second each")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    seconds, rounds = (1.0, 1) if given.quick else (given.seconds, given.rounds)
    with ExitStack() as stack:
        servers = servers_of(given, stack)
        measure(servers, seconds, rounds, distinct(sentences()))
        planned = servers[given.types.index("auto") if "auto" in given.types else 0]
        print(f"threads of every engine: {given.threads}; {rounds} rounds of {seconds:g} s\n")
        print(table(HEADS, list(rows(servers, planned)), markdown=given.markdown), end="\n\n")
        heads = ("server", "type", "ready s", "RSS MiB", "idle CPU %", "lowest cosine", "length", "600 words")
        print(table(heads, list(facts(servers)), markdown=given.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
