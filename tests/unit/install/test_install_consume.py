"""Installing where the disk has room for the bundle once: its files become the release's, its tar gets shorter."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.fakes.miniature import miniature, packed
from tests.unit.install.conftest import Target
from tests.unit.install.test_install_upgrade_source import QUIET, key, one, two, upgrade

from sampan.bundle import delta_pack, taking
from sampan.bundle.archive import Archive
from sampan.errors import BadInputError, FilesystemError, ServiceError, UsageError, VerificationError
from sampan.flow import trusting
from sampan.install import gc, lookup
from sampan.install.steps import install

__all__ = ["one", "two"]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A miniature has 100 kB: let it go by in many steps."""
    monkeypatch.setattr(taking, "_LEAST_BYTES", 1000)
    monkeypatch.setattr(taking, "_PIECE_BYTES", 700)
    monkeypatch.setattr(os, "geteuid", os.getuid)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Path -> bytes and mode."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o7777) for path in files}


def hidden(machine: Target) -> list[str]:
    """What lies beside the releases."""
    return sorted(path.name for path in (machine.prefix / "releases").glob(".*"))


def stopped_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """The disk fails at that step of moving out of the tar."""
    real, left = taking._Taker.flush, [steps]

    def flush(self: taking._Taker, rest: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(5, "Input/output error")
        real(self, rest)

    monkeypatch.setattr(taking._Taker, "flush", flush)


def test_a_tar_is_consumed_by_the_release_that_it_becomes(one: Target, two: Path, tmp_path: Path) -> None:
    wanted, tar = contents(two), packed(two, tmp_path / "tar")
    assert upgrade(one, tar, consume=True).release == 2
    assert contents(one.prefix / "releases/2") == wanted
    assert not tar.exists()
    assert hidden(one) == []


@pytest.mark.parametrize("steps", [0, 1, 5, 20])
def test_an_interrupted_taking_goes_on_where_it_stopped(
    one: Target, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    wanted, tar = contents(two), packed(two, tmp_path / "tar")
    whole = tar.stat().st_size
    with monkeypatch.context() as patched, pytest.raises(FilesystemError):
        stopped_after(patched, steps)
        upgrade(one, tar, consume=True)
    assert (tar.stat().st_size < whole) == (steps > 0)
    assert hidden(one) == [".2.only", ".2.taking"]
    assert (one.prefix / "current").readlink() == Path("releases/1")
    assert any("run the same command again" in line for line in one.said)
    assert upgrade(one, tar, consume=steps != 5).release == 2
    assert contents(one.prefix / "releases/2") == wanted
    assert hidden(one) == []


def test_a_release_that_does_not_start_is_not_lost_with_its_tar(one: Target, two: Path, tmp_path: Path) -> None:
    wanted, tar = contents(two), packed(two, tmp_path / "tar")
    one.selftest_error = ServiceError("target.selftest", text="x", score="0", minimum="1")
    with pytest.raises(ServiceError):
        upgrade(one, tar, consume=True)
    assert (tar.stat().st_size, hidden(one)) == (512, [".2.only", ".2.taking"])
    one.selftest_error = None
    assert upgrade(one, tar, consume=True).release == 2
    assert contents(one.prefix / "releases/2") == wanted
    assert not tar.exists()


def test_what_was_taken_is_given_up_by_gc_or_by_carrying_it_again(
    one: Target, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tar = packed(two, tmp_path / "tar")
    with monkeypatch.context() as patched, pytest.raises(FilesystemError):
        stopped_after(patched, 3)
        upgrade(one, tar, consume=True)
    (one.prefix / "releases/.2.taking/of another tar").write_text("x")
    shutil.copy(packed(two, tmp_path / "again"), tar)
    with monkeypatch.context() as patched, pytest.raises(FilesystemError):
        stopped_after(patched, 3)
        upgrade(one, tar, consume=True)
    assert not (one.prefix / "releases/.2.taking/of another tar").exists()
    machine = lookup.find(None, prefix=one.prefix).machine(one.systemd, one.root)
    gc.gc(one.prefix, 2, machine, one.hands())
    assert hidden(one) == []
    with pytest.raises(BadInputError, match="cut short"):
        upgrade(one, tar, consume=True)


def test_a_tar_that_is_not_right_is_refused_whole(one: Target, two: Path, tmp_path: Path) -> None:
    tar = packed(two, tmp_path / "tar")
    data = tar.read_bytes().replace(b"GGUFGGUF", b"GGUFGGUG", 1)
    tar.write_bytes(data)
    before = one.files()
    with pytest.raises(VerificationError, match="tiny model"):
        upgrade(one, tar, consume=True)
    shutil.copy(packed(two, tmp_path / "right"), tar)
    with pytest.raises(VerificationError, match="not signed"):
        upgrade(one, tar, key(tmp_path, "site")[1], consume=True)
    assert one.files() == before
    assert tar.stat().st_size == len(data)


def test_what_was_changed_meanwhile_is_found_and_nothing_of_it_stays(
    one: Target, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tar, real = packed(two, tmp_path / "tar"), taking.prepare

    def meddle(archive: Archive, folder: Path) -> None:
        real(archive, folder)
        tar.write_bytes(tar.read_bytes().replace(b"GGUFGGUF", b"GGUFGGUG", 1))

    monkeypatch.setattr(taking, "prepare", meddle)
    with pytest.raises(VerificationError) as caught:
        upgrade(one, tar, consume=True)
    assert caught.value.key == "install.taken-damaged"
    assert hidden(one) == []
    assert (one.prefix / "current").readlink() == Path("releases/1")


def test_a_tar_with_a_second_name_or_through_a_link_is_not_consumed(one: Target, two: Path, tmp_path: Path) -> None:
    tar = packed(two, tmp_path / "tar")
    os.link(tar, tmp_path / "other")
    (tmp_path / "link.tar").symlink_to(tar)
    with pytest.raises(FilesystemError, match="second name"):
        upgrade(one, tar, consume=True)
    (tmp_path / "other").unlink()
    with pytest.raises(FilesystemError) as caught:
        upgrade(one, tmp_path / "link.tar", consume=True)
    assert caught.value.key == "bundle.take-refused"
    assert upgrade(one, tar).release == 2


def test_a_folder_gives_its_files_and_goes(one: Target, two: Path) -> None:
    wanted, inode = contents(two), (two / "weights/tiny model.gguf").stat().st_ino
    assert upgrade(one, two, consume=True).release == 2
    assert contents(one.prefix / "releases/2") == wanted
    assert (one.prefix / "releases/2/weights/tiny model.gguf").stat().st_ino == inode
    assert not two.exists()


def test_a_folder_stays_whole_where_the_release_does_not_start(one: Target, two: Path) -> None:
    wanted = contents(two)
    one.selftest_error = ServiceError("target.selftest", text="x", score="0", minimum="1")
    with pytest.raises(ServiceError):
        upgrade(one, two, consume=True)
    assert contents(two) == wanted
    assert trusting.check(two, (), QUIET).problems == ()
    assert not (one.prefix / "releases/2").exists()


def test_what_others_could_still_write_is_copied(one: Target, two: Path) -> None:
    """A file that its group may write, and one that a process has open for writing."""
    group, held = two / "weights/golden.json", two / "weights/tiny model.gguf"
    group.chmod(0o664)
    inodes = {path.name: path.stat().st_ino for path in (group, held, two / "start.sh")}
    with held.open("r+b"):
        upgrade(one, two, consume=True)
    there = one.prefix / "releases/2"
    same = {name: (next(there.rglob(name)).stat().st_ino == inode) for name, inode in inodes.items()}
    assert same == {"golden.json": False, "tiny model.gguf": False, "start.sh": True}
    assert next(there.rglob("golden.json")).stat().st_mode & 0o777 == 0o644


def test_a_changed_file_in_a_consumed_folder_is_refused_and_the_folder_stays(one: Target, two: Path) -> None:
    (two / "weights/tiny model.gguf").write_bytes(b"GGUG" * 1000)
    wanted = contents(two)
    with pytest.raises(VerificationError, match="tiny model"):
        upgrade(one, two, consume=True)
    assert contents(two) == wanted


def test_the_first_installation_consumes_its_folder(target: Target, tmp_path: Path) -> None:
    bundle = miniature(tmp_path / "mini-1")
    (bundle.parent / "mini-1/notes").mkdir()
    wanted = contents(bundle)
    install(target.options(bundle, consume=True), target.hands())
    assert contents(target.prefix / "releases/1") == wanted
    assert not bundle.exists()


def test_an_installed_release_is_not_consumed(one: Target) -> None:
    with pytest.raises(UsageError) as caught:
        upgrade(one, one.prefix / "releases/1", consume=True)
    assert caught.value.key == "install.consume-installed"


def test_a_consumed_delta_goes_at_the_end(one: Target, two: Path, tmp_path: Path) -> None:
    made = Path(
        delta_pack.make(two, *delta_pack.since_bundle(tmp_path / "mini-1"), tmp_path / "d", progress=QUIET).path
    )
    assert upgrade(one, made, consume=True).release == 2
    assert not made.exists()
