"""The plan's memory table against llama-server: predicted, and measured after a request of the promised length.

    .venv/bin/python bench/plan_memory.py [--quick] [--large] [--models FOLDER]

Each row is a plan of the real planner, run with the real command line. Measured is the resident set size of the
process (``/proc/PID/smaps_rollup``); predicted are the rows of the engine, without gateway, prompt cache and margin.
Models of bge-m3's and Qwen2-1.5B's shape are made with random weights (2 GB in FOLDER, kept); MiniLM and SmolLM2 come
from the store, where ``sampan weights`` puts them. ``SAMPAN_BENCH_GGUF`` names one more. Exit code 1 where a row is
off by more than 10 %.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fakes import real_engine, shaped_models

from sampan.edge.store import default_root
from sampan.gateway.engine_args import engine_argv, engine_environment
from sampan.plan import engine_memory
from sampan.plan.options import PlanOptions
from sampan.plan.planner import make_plan
from sampan.spec.plan import Plan
from sampan.spec.weights import WeightsInfo
from sampan.survey.machine import survey_this
from sampan.weights.describe import Origin, describe
from sampan.weights.gguf_header import read_header

Ask = Callable[..., int]
LIMIT = 0.10
MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """``model``: a shape and type, or a pattern of a file in the store; ``options`` as a user gives them."""

    model: str
    options: PlanOptions
    quick: bool = False
    large: bool = field(default=False)


def _options(tokens: int, slots: int, load: str, kv: str = "f16") -> PlanOptions:
    return PlanOptions(max_tokens=tokens, concurrency=slots, load_mode=load, kv_type=kv)


MINILM, SMOLLM2 = "all-MiniLM-L6-v2*F16.gguf", "SmolLM2-135M-Instruct*Q4_1.gguf"
CASES = (
    Case(MINILM, _options(512, 8, "mmap"), quick=True),
    Case(MINILM, _options(256, 1, "none")),
    Case(SMOLLM2, _options(1024, 1, "mmap"), quick=True),
    Case(SMOLLM2, _options(4096, 4, "mmap")),
    Case(SMOLLM2, _options(2048, 2, "none", "q8_0")),
    Case(SMOLLM2, _options(2048, 1, "mmap+mlock", "q4_0")),
    Case("small-encoder Q4_0", _options(2048, 8, "mmap"), quick=True),
    Case("small-decoder Q4_0", _options(4096, 2, "none"), quick=True),
    Case("bge-m3 Q4_K_M", _options(512, 8, "none")),
    Case("bge-m3 Q4_K_M", _options(512, 8, "mmap")),
    Case("bge-m3 Q4_K_M", _options(2048, 8, "none")),
    Case("bge-m3 Q8_0", _options(512, 1, "mmap")),
    Case("qwen2-1.5b Q4_K_M", _options(1024, 1, "none")),
    Case("qwen2-1.5b Q4_K_M", _options(512, 4, "mmap", "q8_0")),
    Case("qwen2-1.5b Q8_0", _options(512, 2, "mmap")),
    Case("qwen3-embedding-0.6b Q8_0", _options(1024, 2, "mmap")),
    Case("bge-m3 Q4_K_M", _options(8192, 8, "none"), large=True),
)


@dataclass(frozen=True)
class Row:
    """Bytes, and where they are."""

    case: str
    predicted: int
    measured: int
    anonymous: int
    status: int

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1


def info_of(path: Path) -> WeightsInfo:
    """What the planner knows of a file; its hash does not matter here."""
    header = read_header(path)
    name = header.fields["general.architecture"]
    return describe(header, str(name), Origin(path.stem, str(path), "gguf", hashlib.sha256(b"").hexdigest()))


def measure(path: Path, options: PlanOptions, executable: Path) -> Row:
    """Start it as planned, send one request of exactly the promised length, read its memory."""
    info = info_of(path)
    plan = make_plan(info, survey_this(), options)
    best = plan.variants[-1:]
    predicted = sum(row.bytes for row in engine_memory.rows(info, plan.settings, best))
    with served(executable, path, plan) as (pid, ask):
        status = ask(*longest_request(plan))
        measured = memory_of(pid)
    return Row(title(path, plan), predicted, measured["Rss"], measured["Pss_Anon"], status)


def title(path: Path, plan: Plan) -> str:
    """The row's words in the table."""
    chosen = plan.settings
    return (
        f"{path.stem} | {chosen.longest} | {chosen.slots} | {chosen.ubatch} | {chosen.kv_type} | {chosen.load_mode}"
    )


def longest_request(plan: Plan) -> tuple[str, dict[str, object]]:
    """Route and body: token ids, so that their number is exact."""
    tokens = [5 + 7 * n % 900 for n in range(plan.settings.longest)]
    if plan.settings.embedding:
        return "/v1/embeddings", {"input": [tokens], "encoding_format": "base64"}
    return "/v1/completions", {"prompt": tokens, "max_tokens": 1, "temperature": 0}


def memory_of(pid: int) -> dict[str, int]:
    """Sums over all mappings, bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine", timeout=3600)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@contextmanager
def served(executable: Path, path: Path, plan: Plan) -> Iterator[tuple[int, Ask]]:
    """The engine's pid, and a way to ask it that gives the status."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "s.sock"
        argv = engine_argv(executable, path, where, plan.settings, threads=plan.settings.threads or 1, alias="m")
        environment = engine_environment(os.environ)
        with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:

                def ask(route: str, body: dict[str, object] | None = None) -> int:
                    connection = _Connection(where)
                    connection.request("POST" if body else "GET", route, json.dumps(body) if body else None)
                    answer = connection.getresponse()
                    answer.read()
                    connection.close()
                    return answer.status

                _wait(process, ask)
                yield process.pid, ask
            finally:
                process.terminate()


def _wait(process: subprocess.Popen[bytes], ask: Ask) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError((process.stderr.read() if process.stderr else b"").decode()[-500:])
        try:
            if ask("/health") == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError


def find(model: str, models: Path) -> Path | None:
    """A file in the store, or a shape that is made."""
    if "*" not in model:
        name, kind = model.split()
        return shaped_models.write(name, kind, models / f"{name}-{kind}.gguf")
    found = sorted(default_root().joinpath("made").rglob(model), key=lambda path: path.stat().st_mtime, reverse=True)
    return found[0] if found else None


def main() -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four rows of small models")
    parser.add_argument("--large", action="store_true", help="also 8192 tokens of bge-m3's shape: minutes")
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir()) / "sampan-shaped-models")
    given = parser.parse_args()
    given.models.mkdir(parents=True, exist_ok=True)
    executable = real_engine.best_executable()
    if executable is None:
        sys.exit("no llama-server for this CPU in the store: run `sampan ship --target this` once")
    print("| model | longest | slots | ubatch | KV | load | predicted MiB | measured MiB | of it anonymous | error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for path, options in _chosen(given):
        row = measure(path, options, executable)
        worst = max(worst, abs(row.error) if row.status == 200 else 1.0)
        sizes = " | ".join(f"{each / MIB:.0f}" for each in (row.predicted, row.measured, row.anonymous))
        print(
            f"| {row.case} | {sizes} | {row.error:+.1%}{'' if row.status == 200 else f' HTTP {row.status}'} |",
            flush=True,
        )
    print(f"\nworst: {worst:.1%}")
    return int(worst > LIMIT)


def _chosen(given: argparse.Namespace) -> Iterator[tuple[Path, PlanOptions]]:
    for case in CASES:
        if (given.quick and not case.quick) or (case.large and not given.large):
            continue
        path = find(case.model, given.models)
        if path is None:
            print(f"no {case.model} in the store", file=sys.stderr)
        else:
            yield path, case.options
    extra = os.environ.get("SAMPAN_BENCH_GGUF")
    if extra:
        yield Path(extra), PlanOptions(max_tokens=512, concurrency=1)


if __name__ == "__main__":
    sys.exit(main())
