"""A build tree that goes on: strays of a killed run, the machine's limits."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from sampan.build.tree import cpu_count, memory_bytes, wait_for_strays
from sampan.errors import BuildError


def _sleeper(folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"], cwd=folder)


def test_a_compiler_still_at_work_is_named(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    stray = _sleeper(tmp_path / "build", 60)
    try:
        with pytest.raises(BuildError) as caught:
            wait_for_strays(tmp_path, seconds=0.3)
    finally:
        stray.kill()
        stray.wait()
    assert caught.value.key == "build.busy"
    assert str(stray.pid) in caught.value.message


def test_it_is_waited_for(tmp_path: Path) -> None:
    stray = _sleeper(tmp_path, 0.5)
    began = time.monotonic()
    try:
        wait_for_strays(tmp_path, seconds=30)
    finally:
        stray.wait()
    assert time.monotonic() - began > 0.2


def test_processes_elsewhere_are_nobodys_strays(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree-of-another").mkdir()
    other = _sleeper(tmp_path / "tree-of-another", 60)
    try:
        wait_for_strays(tmp_path / "tree", seconds=0)
    finally:
        other.kill()
        other.wait()


def test_the_containers_memory_counts_where_it_is_less(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    whole = memory_bytes(limit)
    limit.write_text("1048576\n", encoding="ascii")
    assert memory_bytes(limit) == 1048576
    limit.write_text("max\n", encoding="ascii")
    assert memory_bytes(limit) == whole > 1 << 28


def test_at_least_one_cpu_may_be_used() -> None:
    assert cpu_count() >= 1
