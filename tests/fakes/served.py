"""A whole gateway as a process of its own, over the fake engine or a real one: for faults, loads and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.engine import write_executable

_ROOT = Path(__file__).parents[2]
_SERVE = """
import json, os, sys
from pathlib import Path
from sampan.gateway.serve import serve
from sampan.gateway.settings import Files, Limits, ServedModel, ServeSettings, Watch
from sampan.spec.plan import EngineSettings
from sampan.spec.weights import GoldenEmbedding, GoldenSet
given = json.loads(sys.argv[1])
following = Path(given["folder"], "next.json")
given |= json.loads(following.read_text()) if following.exists() else {}
os.environ["FAKE_LOADING_SECONDS"] = given.get("loading", os.environ.get("FAKE_LOADING_SECONDS", "0"))
golden = GoldenSet("m", "none", embeddings=(GoldenEmbedding("a", (1.0,) * 8),)) if given.get("golden") else None
said = Path(given["folder"], "said")
def say(line):
    print(line, flush=True)
    with said.open("a") as file:
        print(line, file=file)
tokens, slots, task = given["tokens"], given["slots"], given["task"]
serve(
    ServeSettings(
        Path(given["engine"]), "test", Path(given["weights"]),
        ServedModel(given["model"], task, given["dimensions"]),
        EngineSettings(tokens, tokens, tokens, slots, True, 0, task == "embedding", given["pooling"]),
        given["threads"], port=0, run_folder=Path(given["folder"]), drain_seconds=given["drain"], start_seconds=60,
        limits=Limits(**given["limits"]), watch=Watch(**given["watch"]),
        files=Files(**{name: Path(value) for name, value in given["files"].items()}), json_logs=given["json_logs"],
        successor=tuple(sys.orig_argv), golden=golden,
    ),
    say=say,
)
"""


@dataclass
class Served:
    """A running service."""

    process: subprocess.Popen[str]
    url: str
    folder: Path

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rsplit(":", 1)[1])

    @property
    def engine_socket(self) -> Path:
        """Its engine's."""
        return next(self.folder.glob("*/engine.sock"))

    @property
    def engine_pid(self) -> int:
        """Its engine's process: the child that is not a helper."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[-1])

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a GET."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def until(self, path: str, status: int, seconds: float) -> float:
        """Seconds until the path has the status. Raises AssertionError."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self.get(path)[0] == status:
                return time.monotonic() - began
            time.sleep(0.05)
        raise AssertionError(f"{path} was not {status} within {seconds} s")


@contextmanager
def served(
    *,
    task: str = "embedding",
    engine: Path | None = None,
    weights: Path | None = None,
    limits: Mapping[str, Any] | None = None,
    watch: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    drain: float = 10,
    slots: int = 8,
    tokens: int = 512,
    threads: int = 1,
    json_logs: bool = False,
) -> Iterator[Served]:
    """The service while the block runs; it is stopped in order, if it still runs, and whoever took over from it."""
    with tempfile.TemporaryDirectory(prefix="gw") as name:
        folder = Path(name)
        (folder / "m.gguf").touch()
        given = {
            "engine": str(engine or write_executable(folder)),
            "weights": str(weights or folder / "m.gguf"),
            "folder": name,
            "task": task,
            "model": "served",
            "dimensions": None if engine or task != "embedding" else 8,
            "pooling": "mean" if engine and task == "embedding" else None,
            "limits": dict(limits or {}),
            "watch": dict(watch or {}),
            "files": dict(files or {}),
            "drain": drain,
            "slots": slots,
            "tokens": tokens,
            "threads": threads,
            "json_logs": json_logs,
        }
        env = {**os.environ, **(environ or {}), "PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}"}
        log = (folder / "log").open("w")
        words = [sys.executable, "-c", _SERVE, json.dumps(given)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=env) as process:
            try:
                yield Served(process, _url_of(process, folder), folder)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    try:
                        process.wait(30)
                    except subprocess.TimeoutExpired:
                        process.kill()
                _end_successors(name)
                log.close()


def _end_successors(folder: str) -> None:
    """They carry the folder in their command, as the first service does, and are nobody's children."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if b"sampan.gateway.serve" in words and f'"folder": "{folder}"'.encode() in words:
                os.kill(int(process.name), signal.SIGTERM)


def _url_of(process: subprocess.Popen[str], folder: Path) -> str:
    for line in process.stdout or ():
        if "http://" in line:
            return "http://" + line.split("http://")[1].split("/")[0]
    raise AssertionError("it did not start: " + (folder / "log").read_text()[-2000:])
