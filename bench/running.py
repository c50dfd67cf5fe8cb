"""The servers that benchmarks measure, as processes of their own, and what the kernel says of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from chosen import Chosen

from sampan.gateway.engine_args import engine_argv, engine_environment

SERVE = """
import json, sys
from pathlib import Path
from sampan.gateway.serve import serve
from sampan.gateway.settings import Limits, ServedModel, ServeSettings
from sampan.spec.plan import EngineSettings
given = json.loads(sys.argv[1])
serve(
    ServeSettings(
        Path(given["engine"]), given["variant"], Path(given["weights"]), ServedModel(**given["model"]),
        EngineSettings(**given["settings"]), given["threads"], port=0, run_folder=Path(given["folder"]),
        limits=Limits(**given["limits"]),
    ),
    say=lambda line: print(line, flush=True),
)
"""


@dataclass(frozen=True)
class Running:
    """A gateway; ``engine`` is its engine's socket."""

    pid: int
    port: int
    engine: str

    @property
    def engine_pid(self) -> int:
        """The child whose command names the socket."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        mine = (int(child) for child in children if self.engine in Path(f"/proc/{child}/cmdline").read_text())
        return next(mine)


@contextmanager
def gateway(chosen: Chosen, threads: int, limits: Mapping[str, float] | None = None) -> Iterator[Running]:
    """With the planned settings, but ``threads`` of the engine."""
    with tempfile.TemporaryDirectory(prefix="gw") as folder:
        info = chosen.weights
        model = {"id": info.name, "task": info.task, "dimensions": info.embedding_length}
        given = {
            "engine": str(chosen.engine),
            "variant": chosen.variant,
            "weights": info.path,
            "model": model,
            "settings": asdict(chosen.settings),
            "threads": threads,
            "folder": folder,
            "limits": dict(limits or {}),
        }
        words = [sys.executable, "-c", SERVE, json.dumps(given)]
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


def planned_flags(chosen: Chosen, threads: int) -> list[str]:
    """What the gateway starts its engine with, but on an address instead of a socket."""
    argv = engine_argv(
        chosen.engine, chosen.path, Path("127.0.0.1"), chosen.settings, threads=threads, alias=chosen.weights.name
    )
    return list(argv[3:])  # without executable and model


@contextmanager
def llama_server(chosen: Chosen, flags: list[str]) -> Iterator[tuple[int, int]]:
    """llama-server reached directly: its process and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [str(chosen.engine), "-m", str(chosen.path), *flags, "--port", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, env=engine_environment(os.environ), stdout=quiet, stderr=quiet) as process:
        try:
            _wait_for(port)
            yield process.pid, port
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    for _ in range(1200):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    raise SystemExit("llama-server did not start")


def cpu_ms(pid: int) -> float:
    """CPU time of all threads of a process so far, as the scheduler counted it (nanoseconds, not ticks)."""
    times = [int((each / "schedstat").read_text().split()[0]) for each in Path(f"/proc/{pid}/task").iterdir()]
    return sum(times) / 1e6


def rss_mib(pid: int) -> float:
    """Resident memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def open_files(pid: int) -> int:
    """File descriptors."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
