"""What the gateway costs: one short text through it, and the same text to its llama-server directly.

    .venv/bin/python bench/gateway_overhead.py [--weights W] [--quantization Q] [--variant V] [--requests N]

Both reach the same engine process in turn, one request at a time, over kept connections and with the same client
code. Engine, weights and settings are those of a bundle for this machine (``chosen.py``). Exit code 1 where a limit
is missed.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import sys
import time
from dataclasses import dataclass, field

from chosen import add_arguments, choose_from
from running import Running, cpu_ms, gateway, rss_mib

TEXT = "How do I open a savings account at this bank?"
WARM_UP = 100
LIMIT_MS = 0.5
LIMIT_CPU_MS = 0.15
LIMIT_RSS_MIB = 80.0


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


def show(encoding: str, measured: Measured) -> tuple[float, float]:
    """Print one table; the overhead at the median and the CPU of a request, milliseconds."""
    print(f"\n{encoding}: {len(measured.direct)} requests each, in turn")
    print(f"{'':<8}{'llama-server':>14}{'gateway':>12}{'ratio':>8}{'more ms':>10}")
    overhead = 0.0
    for name, place in (("p50", 50), ("p90", 90), ("p99", 99)):
        one, other = (statistics.quantiles(times, n=100)[place - 1] for times in (measured.direct, measured.through))
        print(f"{name:<8}{one:>14.3f}{other:>12.3f}{other / one:>8.2f}{other - one:>10.3f}")
        overhead = other - one if name == "p50" else overhead
    print(f"gateway CPU per request: {measured.cpu:.3f} ms")
    return overhead, measured.cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add_arguments(parser)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1, help="of the engine; fewer than CPUs, or both compete")
    given = parser.parse_args()
    chosen = choose_from(given)
    chosen.show()
    print(f"engine threads: {given.threads}")
    with gateway(chosen, given.threads) as running:
        shown = [show(encoding, measure(running, encoding, given.requests)) for encoding in ("base64", "float")]
        rss = rss_mib(running.pid)
    more, cpu = max(each for each, _ in shown), shown[0][1]
    met = more <= LIMIT_MS and cpu <= LIMIT_CPU_MS and rss <= LIMIT_RSS_MIB
    print(f"\ngateway RSS {rss:.1f} MiB (limit {LIMIT_RSS_MIB:g})")
    print(f"more at the median, the larger of both: {more:.3f} ms (limit {LIMIT_MS:g})")
    print(f"CPU of a request with base64: {cpu:.3f} ms (limit {LIMIT_CPU_MS:g})")
    print("limits met" if met else "LIMIT MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
