"""An upgrade that consumes its bundle, killed at every change and cut off between any two syncs.

Whatever was left, the same command ends with the release whole, or the folder that was installed from still is.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from tests.fakes.kills import Countdown, LastingSystemd, Platter, killed_at
from tests.fakes.miniature import miniature, packed
from tests.unit.install import conftest
from tests.unit.install.conftest import Target

from sampan.bundle import taking
from sampan.edge.progress import SilentProgress
from sampan.flow import asking, installing
from sampan.flow.opening import Wish
from sampan.install import change, lookup, release
from sampan.install.steps import install

pytestmark = pytest.mark.integration
target = conftest.target
POINTS = int(os.environ.get("SAMPAN_KILL_POINTS", "40"))  # of each; 1000 tries every one


@pytest.fixture
def machine(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Release 1 is installed; what it is upgraded with lies on the same disk, and goes by in many steps."""
    monkeypatch.setattr("sampan.install.place.closed", lambda _folder: None)
    monkeypatch.setattr(asking, "hands", lambda _say, _progress: target.hands())
    monkeypatch.setattr(taking, "_LEAST_BYTES", 1000)
    monkeypatch.setattr(taking, "_PIECE_BYTES", 700)
    monkeypatch.setattr(os, "geteuid", os.getuid)
    target.systemd = LastingSystemd(target.root, prefix=target.prefix)
    install(target.options(miniature(tmp_path / "mini-1")), target.hands())
    return target


def bundle(machine: Target, kind: str) -> Path:
    """Release 2 as a folder or tar, in the pretended machine's own tree."""
    folder = miniature(machine.root / "data/mini-2", 2)
    if kind == "folder":
        return folder
    tar = packed(folder, machine.root / "data")
    shutil.rmtree(folder)
    return tar


def upgrade(machine: Target, path: Path, countdown: Countdown | None = None) -> None:
    """Consume it."""
    assert isinstance(machine.systemd, LastingSystemd)
    machine.systemd.countdown = countdown
    found = lookup.find(None, prefix=machine.prefix)
    if found.record is not None and found.record.release == 2 and not path.exists():
        return  # it was done, but for the last line
    installing.upgrade(path, found, Wish((), consume=True), machine.said.append, SilentProgress())


def stands(machine: Target) -> None:
    """What is in force is whole."""
    assert release.intact(machine.prefix / "current")


def done(machine: Target, kind: str) -> None:
    """Release 2 is in force, and nothing is left beside it."""
    stands(machine)
    assert (machine.prefix / "current").readlink() == Path("releases/2")
    assert sorted(path.name for path in (machine.prefix / "releases").iterdir()) == ["1", "2"]
    assert not any(path.is_file() for path in (machine.root / "data").rglob(f"mini-2.{kind}"))


@pytest.mark.parametrize("kind", ["tar", "folder"])
def test_killed_at_every_change(machine: Target, kind: str, tmp_path: Path) -> None:
    path, keep = bundle(machine, kind), tmp_path / "before"
    shutil.copytree(machine.root, keep, symlinks=True)
    killed, changes = killed_at(0, lambda countdown: upgrade(machine, path, countdown))
    assert not killed
    done(machine, kind)
    assert changes > 40
    for point in random.Random(kind).sample(range(1, changes + 1), min(changes, POINTS)):
        shutil.rmtree(machine.root)
        shutil.copytree(keep, machine.root, symlinks=True)
        killed, _ = killed_at(point, lambda countdown: upgrade(machine, path, countdown))
        assert killed, point
        stands(machine)
        if path.exists():  # else all was done
            found = lookup.find(None, prefix=machine.prefix)
            there = found.machine(machine.systemd, machine.root)
            change.settle(machine.prefix, there, machine.hands())  # what `sampan restart` does first
            stands(machine)
            if kind == "folder" and not (machine.prefix / "releases/2").exists():
                assert release.intact(path), point
        _again(machine, path)
        stands(machine)
        assert (machine.prefix / "current").readlink() == Path("releases/2"), point


def _again(machine: Target, path: Path) -> None:
    """The same command; a folder that was being removed when all was done is no bundle any longer."""
    if path.is_dir() and not (path / "SHA256SUMS").exists():
        return
    record = lookup.find(None, prefix=machine.prefix).record
    if path.is_dir() and record is not None and record.release == 2:
        return
    upgrade(machine, path)


def test_power_cut_between_any_two_syncs(machine: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that keeps only what was synced, but for the tar's length, which it may keep at once."""
    path = bundle(machine, "tar")
    platter = Platter(machine.root)
    platter.sync()
    whole, moments = path.read_bytes(), [(platter.copy(), path.stat().st_size, _own(machine))]

    def note() -> None:
        moments.append((platter.copy(), path.stat().st_size if path.exists() else -1, _own(machine)))

    def fsync(handle: object) -> None:
        platter.fsync(handle if isinstance(handle, int) else handle.fileno())  # type: ignore[attr-defined]
        note()

    def sync() -> None:
        platter.sync()
        note()

    truncate = os.ftruncate

    def shorter(handle: int, size: int) -> None:
        truncate(handle, size)
        note()

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fsync)
        patched.setattr("os.sync", sync)
        patched.setattr("os.ftruncate", shorter)
        upgrade(machine, path)
    assert len(moments) > 60
    assert isinstance(machine.systemd, LastingSystemd)
    for moment, size, own in random.Random(1).sample(moments, min(len(moments), POINTS)):
        moment.power_cut(own)
        if size < 0:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(whole[:size])
        stands(machine)
        machine.systemd.reboot()
        upgrade(machine, path)
        stands(machine)
        assert (machine.prefix / "current").readlink() == Path("releases/2"), size


def _own(machine: Target) -> dict[str, bytes]:
    """What useradd and the like write and sync themselves."""
    return {f"etc/{name}": (machine.root / "etc" / name).read_bytes() for name in ("passwd", "group")}
