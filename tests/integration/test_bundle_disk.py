"""A disk that really is full, a process that really is killed: nothing half-written stays."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.disks import small_disk

from sampan.bundle import layout, manifest
from sampan.bundle.pack import pack
from sampan.bundle.seal import seal
from sampan.errors import FilesystemError

pytestmark = pytest.mark.integration
MIB = 1 << 20


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """The smallest folder that can be sealed, with 64 MiB of weights."""
    folder = tmp_path / "big-1"
    (folder / "weights").mkdir(parents=True)
    weights = os.urandom(MIB) * 64
    (folder / "weights/big.gguf").write_bytes(weights)
    (folder / layout.PLAN).write_bytes(b"{}")
    predicate = {
        "name": "big",
        "release": 1,
        "arch": "aarch64",
        "plan": {"sha256": hashlib.sha256(b"{}").hexdigest()},
        "engine": {"name": "llama.cpp", "variants": []},
        "weights": {"file": "weights/big.gguf", "sha256": hashlib.sha256(weights).hexdigest()},
    }
    statement = {"predicateType": manifest.PREDICATE_TYPE, "predicate": predicate, "subject": []}
    (folder / layout.MANIFEST).write_bytes(manifest.to_bytes(statement))
    seal(folder, None)
    return folder


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    with small_disk(tmp_path / "small", 16) as place:
        yield place


def test_packing_onto_a_full_disk(sealed: Path, small_disk: Path) -> None:
    with pytest.raises(FilesystemError) as caught:
        pack(sealed, small_disk)
    assert caught.value.key == "disk.full"
    assert list(small_disk.iterdir()) == []


def test_packing_killed_in_the_middle(sealed: Path, tmp_path: Path) -> None:
    out = tmp_path / "carry"
    code = (
        "import os, time; from pathlib import Path; from sampan.bundle.pack import pack; "
        "os.fsync = lambda _: time.sleep(60); "  # all is written and nothing has its name yet
        f"pack(Path({str(sealed)!r}), Path({str(out)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while not list(out.glob(".big-1.tar.part-*")) and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (out / "big-1.tar").exists()
    package = pack(sealed, out)
    assert sorted(path.name for path in out.iterdir()) == ["big-1.tar", "big-1.tar.sha256"]
    assert hashlib.sha256((out / "big-1.tar").read_bytes()).hexdigest() == package.sha256
