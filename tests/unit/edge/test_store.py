"""DiskStore: complete or absent, made once, errors that name the path."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
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
    assert sorted((tmp_path / "made" / "stage").iterdir()) == [result, result.with_name(f"{result.name}.files")]


def _keep(root: Path) -> tuple[Path, Path, bool]:
    """The result and its inventory, and whether it was made now."""
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "below").mkdir()
        (folder / "below" / "file").write_text("content")
        (folder / "other").write_text("more")
        (folder / "link").symlink_to("other")

    result = DiskStore(root).get_or_make("stage", {}, make)
    return result, result.with_name(f"{result.name}.files"), bool(made)


def _cut_in_place(path: Path) -> None:
    """Shorter, with the time of change that it had."""
    state = path.stat()
    path.write_text("cont")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def _relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("below")


def _replace_by_file(path: Path) -> None:
    shutil.rmtree(path)
    path.touch()


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


_DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "file removed": lambda result, _: (result / "below" / "file").unlink(),
    "folder removed": lambda result, _: shutil.rmtree(result),
    "replaced by a file": lambda result, _: _replace_by_file(result),
    "file cut": lambda result, _: _cut_in_place(result / "below" / "file"),
    "file emptied": lambda result, _: os.truncate(result / "other", 0),
    "same size, other content": lambda result, _: (result / "other").write_text("less"),
    "file added": lambda result, _: (result / "below" / "extra").touch(),
    "file became a folder": lambda result, _: _replace_by_folder(result / "other"),
    "link changed": lambda result, _: _relink(result / "link"),
    "no inventory": lambda _, inventory: inventory.unlink(),
    "inventory emptied": lambda _, inventory: os.truncate(inventory, 0),
    "inventory cut": lambda _, inventory: os.truncate(inventory, inventory.stat().st_size - 9),
    "inventory of another kind": lambda _, inventory: inventory.write_text("1\n"),
}


@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE.keys())
def test_a_damaged_result_is_made_again(tmp_path: Path, damage: Callable[[Path, Path], object]) -> None:
    result, inventory, _ = _keep(tmp_path)
    damage(result, inventory)
    assert DiskStore(tmp_path).find("stage", {}) is None
    assert _keep(tmp_path) == (result, inventory, True)
    assert _keep(tmp_path) == (result, inventory, False)
    assert DiskStore(tmp_path).find("stage", {}) == result
    assert (result / "below" / "file").read_text() == "content"
    assert not (result / "below" / "extra").exists()


def test_a_result_that_was_only_touched_is_kept(tmp_path: Path) -> None:
    result, inventory, _ = _keep(tmp_path)
    os.utime(result / "other", ns=(1, 1))
    assert _keep(tmp_path) == (result, inventory, False)


def test_a_copied_cache_is_taken(tmp_path: Path) -> None:
    first, _, _ = _keep(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two", symlinks=True, copy_function=shutil.copyfile)
    second, _, made = _keep(tmp_path / "two")
    assert second.name == first.name
    assert not made


def test_untouched_contents_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _keep(tmp_path)

    def refuse(_: Path) -> str:
        raise AssertionError("read again")

    monkeypatch.setattr("sampan.edge.inventory.sha256_of", refuse)
    assert not _keep(tmp_path)[2]


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
