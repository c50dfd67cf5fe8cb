"""DiskStore: complete or absent, made once, errors that name the path."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from sampan.disk import filesystem_errors
from sampan.edge.files import write_atomically
from sampan.edge.store import DiskStore, default_root, digest_of
from sampan.errors import ExitCode, FilesystemError


def test_a_result_is_made_once_and_found_again(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "a").write_text("1")

    first = store.get_or_make("stage", {"x": 1}, make)
    second = store.get_or_make("stage", {"x": 1}, make)
    other = store.get_or_make("stage", {"x": 2}, make)
    assert first == second != other
    assert (first / "a").read_text() == "1"
    assert len(made) == 2


def test_a_failing_maker_leaves_nothing(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").write_text("…")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.get_or_make("stage", {}, fail)
    assert list((tmp_path / "made" / "stage").iterdir()) == []


def _make_slowly(root: str) -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("…")
        Path(root, "started").touch()
        time.sleep(60)

    DiskStore(Path(root)).get_or_make("stage", {}, make)


def test_a_killed_maker_blocks_nobody_and_its_rest_is_swept(tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=_make_slowly, args=(str(tmp_path),))
    child.start()
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    left = list((tmp_path / "made" / "stage").iterdir())
    assert len(left) == 1
    assert left[0].name.startswith(".")
    result = DiskStore(tmp_path).get_or_make("stage", {}, lambda folder: (folder / "whole").touch())
    assert [path.name for path in result.iterdir()] == ["whole"]
    assert list((tmp_path / "made" / "stage").iterdir()) == [result]


def test_keys_do_not_depend_on_order() -> None:
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})


@pytest.mark.parametrize(
    ("number", "key"),
    [
        (errno.ENOSPC, "disk.full"),
        (errno.EDQUOT, "disk.full"),
        (errno.EACCES, "disk.permission"),
        (errno.EROFS, "disk.permission"),
        (errno.EIO, "disk.failed"),
    ],
)
def test_refusals_of_the_system_name_path_and_kind(tmp_path: Path, number: int, key: str) -> None:
    with pytest.raises(FilesystemError) as caught, filesystem_errors(tmp_path):
        raise OSError(number, os.strerror(number), str(tmp_path / "file"))
    assert caught.value.key == key
    assert caught.value.exit_code == ExitCode.FILESYSTEM
    assert str(tmp_path / "file") in caught.value.message


def test_an_atomic_write_keeps_the_old_file_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FilesystemError):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMPAN_CACHE", "/disk/cache")
    assert default_root() == Path("/disk/cache")
    monkeypatch.delenv("SAMPAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/disk/xdg")
    assert default_root() == Path("/disk/xdg/sampan")
