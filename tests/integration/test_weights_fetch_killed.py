"""The real command against a server that behaves like a hub: killed, a full disk, and on to a plan."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes import tiny_models
from tests.fakes.disks import small_disk
from tests.fakes.hub_server import Hub, hub_served

from sampan.errors import ExitCode

pytestmark = pytest.mark.integration
TOKEN = "hf_T0ken-of-the-tests"
LARGE = "model.safetensors"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with hub_served() as hub:
        yield hub


def start(hub: Hub, cache: Path, *words: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environ = {**clean, "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "SAMPAN_CACHE": str(cache), "LC_ALL": "C"}
    command = [sys.executable, "-m", "sampan", *words]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(hub: Hub, cache: Path, *words: str) -> tuple[int, str, str]:
    process = start(hub, cache, *words)
    out, err = process.communicate(timeout=120)
    assert TOKEN not in out + err
    return process.returncode, out, err


@pytest.mark.parametrize(("end", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 130), (signal.SIGINT, 130)])
def test_a_fetch_that_was_ended_half_way_goes_on(hub: Hub, tmp_path: Path, end: signal.Signals, code: int) -> None:
    body = random.Random(1).randbytes(8 << 20)
    hub.files = {"config.json": b"{}", LARGE: body}
    out = tmp_path / "out"
    part = out / f".{LARGE}.part"
    hub.pace = 0.03
    process = start(hub, tmp_path / "cache", "weights", "fetch", "hf:org/name", "--out", str(out))
    until = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 1 << 20):
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.02)
    assert TOKEN not in Path(f"/proc/{process.pid}/cmdline").read_text()
    process.send_signal(end)
    process.communicate(timeout=30)
    assert process.returncode == code
    assert not (out / LARGE).exists()
    had, hub.pace = part.stat().st_size, 0.0
    hub.requests.clear()
    returned, _, said = run(hub, tmp_path / "cache", "weights", "fetch", "hf:org/name", "--out", str(out))
    assert returned == 0, said
    assert (out / LARGE).read_bytes() == body
    assert sorted(each.name for each in out.iterdir()) == ["config.json", LARGE]
    assert had > 1 << 20
    assert {request[2] for request in hub.requests if f"/large/{LARGE}" in request[1]} == {f"bytes={had}-"}


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    with small_disk(tmp_path / "small", 16) as place:
        yield place


@pytest.mark.parametrize("seen", [True, False])
def test_a_full_disk(hub: Hub, tmp_path: Path, small_disk: Path, seen: bool) -> None:
    hub.files = {"config.json": b"{}", LARGE: random.Random(1).randbytes(20 << 20)}
    words = ["weights", "fetch", "hf:org/name", "--out", str(small_disk / "out"), "--json"]
    if not seen:  # the space goes while the file comes
        hub.files = {LARGE: random.Random(1).randbytes(12 << 20)}
        words[2] = "hf:org/name:*"
        (small_disk / "other").write_bytes(bytes(1))
        script = (
            "import sys; import sampan.weights.fetch.fetch as f; f._require_space = lambda *_: None;"
            "from sampan.cli.main import main; main()"
        )
        (small_disk / "other").write_bytes(bytes(8 << 20))
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environ = {**clean, "HF_ENDPOINT": hub.url, "SAMPAN_CACHE": str(tmp_path / "cache"), "LC_ALL": "C"}
        done = subprocess.run(
            [sys.executable, "-c", script, *words], env=environ, capture_output=True, text=True, check=False
        )
        code, out = done.returncode, done.stdout
    else:
        code, out, _ = run(hub, tmp_path / "cache", *words)
    said = json.loads(out)
    assert (code, said["key"]) == (int(ExitCode.FILESYSTEM), "hub.space" if seen else "disk.full")
    assert not (small_disk / "out" / LARGE).exists()


def test_a_plan_is_made_of_a_model_on_a_hub(hub: Hub, tmp_path: Path) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    hub.files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    words = ("plan", "--weights", "hf:org/name", "--target", "kylin-v10-phytium-d2000", "--json")
    code, out, said = run(hub, tmp_path / "cache", *words)
    assert code == 0, said
    assert json.loads(out)["model"] == "name"
    code, out, _ = run(hub, tmp_path / "cache", "weights", "hf:org/name", "--json")
    info = json.loads(out)
    assert (code, info["source"], info["origin"]) == (0, "hf:org/name", "sentence-transformers")
    code, out, _ = run(hub, tmp_path / "cache", "weights", "inspect", "hf:org/name", "--json")
    assert (code, json.loads(out)["name"]) == (0, "name")
