"""What the gateway costs: one short text through it, and the same text to its llama-server directly.

    .venv/bin/python bench/gateway_overhead.py [--engine FILE] [--weights FILE.gguf] [--requests N]

Both reach the same engine process in turn, one request at a time, over kept connections and with the same client
code. Engine and weights are taken from the store, where ``sampan ship --target this`` puts them. Exit code 1 where a
limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile

from sampan.edge.store import default_root

TEXT = "How do I open a savings account at this bank?"
WARM_UP = 100
LIMIT_MS = 0.5
LIMIT_RSS_MIB = 80.0
MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
SERVE = """
import sys
from pathlib import Path
from sampan.gateway.serve import serve
from sampan.gateway.settings import ServedModel, ServeSettings
from sampan.spec.plan import EngineSettings
engine, weights, threads, folder = sys.argv[1:]
settings = EngineSettings(
    context=512, batch=512, ubatch=512, slots=4, unified_kv=True, threads=0, embedding=True, pooling="mean"
)
serve(
    ServeSettings(
        Path(engine), "bench", Path(weights), ServedModel("bench", "embedding"), settings, int(threads), port=0,
        run_folder=Path(folder),
    ),
    say=lambda line: print(line, flush=True),
)
"""


class Client:
    """HTTP/1.1 over one kept connection; opens a new one when the server says that it closes (not timed)."""

    def __init__(self, address: str | tuple[str, int], encoding: str) -> None:
        self.address = address
        body = json.dumps({"input": TEXT, "encoding_format": encoding}).encode()
        head = (
            "POST /v1/embeddings HTTP/1.1",
            "Host: x",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        self.request = "\r\n".join((*head, "", "")).encode() + body
        self.connection: socket.socket | None = None

    def ask(self) -> float:
        """Seconds from the first byte sent to the last byte read."""
        connection = self.connection = self.connection or self._connect()
        began = time.perf_counter()
        connection.sendall(self.request)
        answer = connection.recv(65536)
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(65536)
        head, _, rest = answer.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
        missing = length - len(rest)
        while missing > 0:
            missing -= len(connection.recv(65536))
        took = time.perf_counter() - began
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"not answered: {answer[:300]!r}")
        if b"connection: close" in lines:
            connection.close()
            self.connection = None
        return took

    def _connect(self) -> socket.socket:
        if isinstance(self.address, str):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.address)
            return connection
        connection = socket.create_connection(self.address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


@dataclass
class Measured:
    """Milliseconds of each request, and the gateway's CPU milliseconds of each."""

    direct: list[float] = field(default_factory=list)
    through: list[float] = field(default_factory=list)
    cpu: float = 0.0


@dataclass(frozen=True)
class Running:
    """A gateway and the socket of its engine."""

    pid: int
    port: int
    engine: str


@contextmanager
def gateway(engine: Path, weights: Path, threads: int) -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="gw") as folder:
        words = [sys.executable, "-c", SERVE, str(engine), str(weights), str(threads), folder]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Running(process.pid, _port_of(process), str(next(Path(folder).glob("*/engine.sock"))))
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate()


def _port_of(process: subprocess.Popen[str]) -> int:
    for line in process.stdout or ():
        if "http://" in line:
            return int(line.split("http://")[1].split("/")[0].split(":")[1])
    raise SystemExit("the gateway did not start")


def cpu_ms(pid: int) -> float:
    """CPU time of all threads of a process so far, as the scheduler counted it (nanoseconds, not ticks)."""
    times = [int((each / "schedstat").read_text().split()[0]) for each in Path(f"/proc/{pid}/task").iterdir()]
    return sum(times) / 1e6


def rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def measure(running: Running, encoding: str, requests: int) -> Measured:
    """In turn, so that whatever else the machine does hits both alike."""
    direct, through = Client(running.engine, encoding), Client(("127.0.0.1", running.port), encoding)
    for _ in range(WARM_UP):
        direct.ask(), through.ask()
    measured = Measured()
    before = cpu_ms(running.pid)
    for index in range(requests):
        pair = [(direct, measured.direct), (through, measured.through)]
        for client, times in pair if index % 2 else reversed(pair):
            times.append(client.ask() * 1000)
    measured.cpu = (cpu_ms(running.pid) - before) / requests
    return measured


def show(encoding: str, measured: Measured) -> float:
    """Print one table; the overhead at the median in milliseconds."""
    print(f"\n{encoding}: {len(measured.direct)} requests each, in turn")
    print(f"{'':<8}{'llama-server':>14}{'gateway':>12}{'ratio':>8}{'more ms':>10}")
    overhead = 0.0
    for name, place in (("p50", 50), ("p90", 90), ("p99", 99)):
        one, other = (statistics.quantiles(times, n=100)[place - 1] for times in (measured.direct, measured.through))
        print(f"{name:<8}{one:>14.3f}{other:>12.3f}{other / one:>8.2f}{other - one:>10.3f}")
        overhead = other - one if name == "p50" else overhead
    print(f"gateway CPU per request: {measured.cpu:.3f} ms")
    return overhead


def newest(pattern: str) -> Path | None:
    """The newest file in the store that this machine can run, or read."""
    files = [path for path in (default_root() / "made").rglob(pattern) if path.is_file()]
    for path in sorted(files, key=lambda each: each.stat().st_mtime, reverse=True):
        if path.suffix == ".gguf" or _is_native(path):
            return path
    return None


def _is_native(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(file.read(4) == b"\x7fELF" and ELFFile(file)["e_machine"] == MACHINES.get(platform.machine()))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--engine", type=Path, default=newest("llama-server"))
    parser.add_argument("--weights", type=Path, default=newest("*MiniLM*.gguf"))
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1, help="of the engine; fewer than CPUs, or both compete")
    given = parser.parse_args()
    if given.engine is None or given.weights is None:
        raise SystemExit("no engine or weights in the store: run `sampan ship --target this` first, or name them")
    print(f"engine {given.engine}\nweights {given.weights}")
    print(f"load before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs; engine threads: {given.threads}")
    with gateway(given.engine, given.weights, given.threads) as running:
        overheads = [show(encoding, measure(running, encoding, given.requests)) for encoding in ("base64", "float")]
        rss = rss_mib(running.pid)
    met = max(overheads) <= LIMIT_MS and rss <= LIMIT_RSS_MIB
    print(f"\ngateway RSS {rss:.1f} MiB (limit {LIMIT_RSS_MIB:g})")
    print(f"more at the median, the larger of both: {max(overheads):.3f} ms (limit {LIMIT_MS:g})")
    print("limits met" if met else "LIMIT MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
