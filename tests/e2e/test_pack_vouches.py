"""Packing vouches for a folder: only for the bytes that were audited and rehearsed, wherever they lie now."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.e2e.ships import MINILM, Shipped, sampan, ship

pytestmark = pytest.mark.e2e


@pytest.fixture
def moved(minilm_here: Shipped, tmp_path: Path) -> Path:
    """The work folder, copied somewhere else."""
    work = tmp_path / "moved.work"
    subprocess.run(["cp", "-a", minilm_here.work, work], check=True)
    return work


def pack(work: Path, out: Path) -> tuple[int, dict[str, str]]:
    done = sampan("pack", str(work), "--out", str(out), "--json")
    said: dict[str, str] = json.loads(done.stdout)
    assert done.returncode == said.get("exit_code", 0)
    return done.returncode, said


def test_a_moved_work_folder_packs_to_the_same_bytes(minilm_here: Shipped, moved: Path, tmp_path: Path) -> None:
    code, said = pack(moved, tmp_path / "out")
    assert (code, said["sha256"]) == (0, minilm_here.said["package"]["sha256"])


@pytest.mark.parametrize("change", ["changed", "extra", "missing"])
def test_what_changed_after_it_was_proved_is_refused(change: str, moved: Path, tmp_path: Path) -> None:
    (folder,) = (moved / "bundle").iterdir()
    if change == "changed":
        with (folder / "start.sh").open("a", encoding="utf-8") as script:
            script.write("# one more line\n")
    elif change == "extra":
        (folder / "app" / "more.py").touch()
    else:
        (folder / "README.txt").unlink()
    code, said = pack(moved, tmp_path / "out")
    assert (code, said["key"]) == (9, "pack.changed")
    assert not (tmp_path / "out").exists()


def test_another_bundles_rehearsal_is_refused(moved: Path, tmp_path: Path) -> None:
    path = moved / "09-rehearsal.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bundle_digest": "0" * 64}), encoding="utf-8")
    code, said = pack(moved, tmp_path / "out")
    assert (code, said["key"]) == (9, "pack.other")
    assert "rehearse" in said["message"]


def test_a_folder_that_is_no_work_folder_is_said_so(tmp_path: Path) -> None:
    assert pack(tmp_path, tmp_path / "out")[1]["key"] == "work.none"


def test_two_ships_do_not_share_a_work_folder(minilm_here: Shipped) -> None:
    handle = os.open(minilm_here.work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        done = sampan(
            "ship", "--json", "-w", MINILM, "-t", "this", "--name", "minilm", "--out", str(minilm_here.work.parent)
        )
    finally:
        os.close(handle)
    said = json.loads(done.stdout)
    assert (done.returncode, said["key"]) == (2, "work.busy")
    assert str(minilm_here.work) in said["message"]


def test_the_bytes_do_not_depend_on_the_workshops_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = set()
    for language in ("C", "zh_CN.UTF-8"):
        monkeypatch.setenv("LANG", language)
        shipped = ship(MINILM, "this", tmp_path / language, "--name", "minilm", "--no-rehearse")
        sums.add(shipped.said["package"]["sha256"])
    assert len(sums) == 1
