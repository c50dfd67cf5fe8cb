"""Embedding servers from PyPI, each in an environment of its own in the store, and started as their manuals say.

The first time takes minutes and 3.3 GB: PyTorch (CPU), and llama-cpp-python, which compiles llama.cpp for this CPU.
Hosts are those of pip's own settings.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sampan.edge.store import DiskStore
from sampan.flow.converter_env import TORCH

APP = Path(__file__).with_name("peers")
OFFLINE = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}


@dataclass(frozen=True)
class Models:
    """The same model in the forms that the servers read."""

    folder: Path  # of sentence-transformers, F32
    onnx: Path  # the same with model.onnx, F32
    gguf: Path


@dataclass(frozen=True)
class Peer:
    """A server. ``words``: what Python is told after its own name, from models, threads and port."""

    name: str
    precision: str
    requirements: tuple[str, ...]
    words: Callable[[Models, int, int], list[str]]
    environ: Callable[[Models, int], Mapping[str, str]] = lambda _models, _threads: {}
    before: tuple[str, ...] = ()  # installed first, so that the rest takes it as it is


def _uvicorn(module: str, _models: Models, _threads: int, port: int) -> list[str]:
    words = ["-m", "uvicorn", "--app-dir", str(APP), f"{module}:app", "--port", str(port)]
    return [*words, "--log-level", "warning"]


def _infinity(models: Models, _threads: int, port: int) -> list[str]:
    words = ["-m", "infinity_emb.cli", "v2", "--model-id", str(models.folder), "--engine", "torch", "--device", "cpu"]
    return [*words, "--dtype", "float32", "--url-prefix", "/v1", "--port", str(port), "--log-level", "error"]


def _llama(models: Models, threads: int, port: int) -> list[str]:
    words = ["-m", "llama_cpp.server", "--model", str(models.gguf), "--embedding", "true", "--verbose", "false"]
    return [*words, "--n_threads", str(threads), "--n_threads_batch", str(threads), "--port", str(port)]


PEERS = (
    Peer(
        "sentence-transformers",
        "F32",
        ("sentence-transformers==6.2.0", "fastapi==0.165.0", "uvicorn[standard]==0.54.0"),
        partial(_uvicorn, "sentence_transformers_app"),
        lambda models, threads: {"MODEL": str(models.folder), "THREADS": str(threads)},
        (TORCH,),
    ),
    Peer(
        "fastembed",
        "F32",
        ("fastembed==0.9.1", "fastapi==0.165.0", "uvicorn[standard]==0.54.0"),
        partial(_uvicorn, "fastembed_app"),
        lambda models, threads: {"MODEL": str(models.onnx), "THREADS": str(threads)},
    ),
    Peer("infinity-emb", "F32", ("infinity-emb[server,torch]==0.0.78",), _infinity, before=(TORCH,)),
    Peer("llama-cpp-python", "F16", ("llama-cpp-python[server]==0.3.36",), _llama),
)


def environment(peer: Peer) -> Path:
    """Its Python. Raises SystemExit with pip's last words."""

    def make(folder: Path) -> None:
        print(f"making the environment of {peer.name} (minutes) …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for wanted in filter(None, (peer.before, peer.requirements)):
            words = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted]
            done = subprocess.run([*map(str, words)], stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{peer.name}: {done.stderr[-1500:]}")

    key: dict[str, object] = {
        "recipe": 1,
        "wanted": [*peer.before, *peer.requirements],
        "machine": platform.machine(),
    }
    key |= {"python": platform.python_version(), "base": sys.base_prefix}
    return DiskStore().get_or_make("bench-peers", key, make) / "bin" / "python"


@contextmanager
def running(peer: Peer, models: Models, threads: int, log: Path) -> Iterator[tuple[int, int]]:
    """Its process and port, as soon as it was started. Raises nothing: who asks it sees whether it came up."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    number = str(threads)
    env = {**os.environ, **OFFLINE, "OMP_NUM_THREADS": number, "MKL_NUM_THREADS": number}
    env |= {"PYTHONDONTWRITEBYTECODE": "1", **peer.environ(models, threads)}
    words = [str(environment(peer)), *peer.words(models, threads, port)]
    with (
        log.open("wb") as out,
        subprocess.Popen(words, env=env, stdout=out, stderr=out, start_new_session=True) as process,
    ):
        try:
            yield process.pid, port
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
