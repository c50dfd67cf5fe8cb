"""SIGKILL at every change that install, upgrade, roll-back, gc and uninstall make, and power cuts between.

What ran before still runs or is restored by the next command; nothing that was begun is left behind.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.fakes.kills import Countdown, LastingSystemd, Platter, killed_at
from tests.unit.install import conftest
from tests.unit.install.conftest import Target, make_bundle, make_plan, seal

from sampan.errors import ServiceError, UsageError
from sampan.install import change, gc, lookup, release
from sampan.install.rollback import rollback
from sampan.install.source import from_folder
from sampan.install.steps import install, put
from sampan.install.uninstall import uninstall

pytestmark = pytest.mark.integration
target = conftest.target

#: of each scene; SAMPAN_KILL_POINTS=1000 tries every one
POINTS = int(os.environ.get("SAMPAN_KILL_POINTS", "36"))
_CREATED = re.compile(rb'"created": \[[^]]*\]')
_NOISE = ("run", "was", "proc")  # the pretended systemd's own


@dataclass
class Life:
    """A pretended machine and three releases of ``mini`` to do things with."""

    target: Target
    systemd: LastingSystemd
    bundles: dict[int, Path]

    def install(self, *numbers: int, port: int | None = None) -> None:
        """Install, then upgrade."""
        for number in numbers:
            verb = "install" if number == 1 else "upgrade"
            options = self.target.options(self.bundles[number], port=port or 9000 + number)
            put(verb, from_folder(self.bundles[number]), options, self.target.hands())

    def rollback(self) -> None:
        """To the one before."""
        machine = lookup.find(None, prefix=self.target.prefix).machine(self.systemd, self.target.root)
        rollback(self.target.prefix, None, machine, self.target.hands(), health_seconds=5)

    def gc(self) -> None:
        """Two stay."""
        machine = lookup.find(None, prefix=self.target.prefix).machine(self.systemd, self.target.root)
        gc.gc(self.target.prefix, 2, machine, self.target.hands())

    def uninstall(self) -> None:
        """All away."""
        uninstall(lookup.find(None, prefix=self.target.prefix), self.target.hands())

    def settle(self) -> None:
        """What `sampan start` and `restart` do first."""
        found = lookup.find(None, prefix=self.target.prefix)
        change.settle(self.target.prefix, found.machine(self.systemd, self.target.root), self.target.hands())

    def files(self) -> dict[str, bytes | str]:
        """The tree, without what a second run cannot know: which folders a killed first one had made."""
        tree = {name: what for name, what in self.target.files().items() if name.split("/")[0] not in _NOISE}
        return {name: _CREATED.sub(b"", what) if isinstance(what, bytes) else what for name, what in tree.items()}

    def stands(self) -> None:
        """Whatever ``current`` names is whole: at any moment the machine may boot and serve."""
        current = self.target.prefix / "current"
        if current.is_symlink():
            assert release.intact(current), current.readlink()

    def settled(self) -> None:
        """Memory is limited as the unit says, and nobody is on the way to take over."""
        assert list(self.target.root.glob("run/systemd/system*/*.d")) == []
        assert "Successor" not in self.systemd.state


@pytest.fixture
def life(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Life:
    """Nothing is installed yet."""
    monkeypatch.setattr("sampan.install.place.closed", lambda _folder: None)
    systemd = LastingSystemd(target.root, prefix=target.prefix)
    target.systemd = systemd
    bundles = {number: _bundle(tmp_path / f"mini-{number}", number) for number in (1, 2, 3)}
    return Life(target, systemd, bundles)


def _bundle(folder: Path, number: int) -> Path:
    """Of a release that can take over from a running one; each needs other memory."""
    plan = replace(make_plan(release=number), memory_total_bytes=(300 + 100 * number) << 20)
    (make_bundle(folder, plan) / "app/sampan/gateway").mkdir(parents=True)
    (folder / "app/sampan/gateway/handover.py").write_text("")
    return seal(folder)


Do = Callable[[Life], None]


def _three(life: Life) -> None:
    options = replace(life.target.options(life.bundles[1]), keep=9)
    install(options, life.target.hands())
    for number in (2, 3):
        wanted = replace(options, bundle=life.bundles[number])
        put("upgrade", from_folder(life.bundles[number]), wanted, life.target.hands())


def _beside(life: Life, *numbers: int, succession: str = "works") -> None:
    """Install these, whose services know how to hand over; the port stays, so they can."""
    life.systemd.succession = succession
    life.install(*numbers, port=9001)


def _in_vain(life: Life) -> None:
    """The next release does not come to serve."""
    life.systemd.succession = "fails"
    with pytest.raises(ServiceError):
        life.install(2, port=9001)


SCENES: dict[str, tuple[Do, Do]] = {
    "install": (lambda _life: None, lambda life: life.install(1)),
    "upgrade": (lambda life: life.install(1), lambda life: life.install(2)),
    "upgrade-the-third": (lambda life: life.install(1, 2), lambda life: life.install(3)),
    "other-port": (lambda life: life.install(1), lambda life: life.install(1, port=9500)),
    "rollback": (lambda life: life.install(1, 2), lambda life: life.rollback()),
    "upgrade-beside": (lambda life: _beside(life, 1), lambda life: life.install(2, port=9001)),
    "upgrade-beside-in-vain": (lambda life: _beside(life, 1), _in_vain),
    "rollback-beside": (lambda life: _beside(life, 1, 2), lambda life: life.rollback()),
    "gc": (_three, lambda life: life.gc()),
    "uninstall": (lambda life: life.install(1, 2), lambda life: life.uninstall()),
}


@pytest.mark.parametrize("scene", sorted(SCENES))
def test_killed_at_every_change(life: Life, scene: str, tmp_path: Path) -> None:
    prepare, act = SCENES[scene]
    prepare(life)
    before, ran, keep = life.files(), life.systemd.running(), tmp_path / "before"
    shutil.copytree(life.target.root, keep, symlinks=True)
    killed, changes = killed_at(0, lambda countdown: _with(countdown, life, act))
    assert not killed
    after, runs = life.files(), life.systemd.running()
    assert changes > 5
    for point in random.Random(scene).sample(range(1, changes + 1), min(changes, POINTS)):
        shutil.rmtree(life.target.root)
        shutil.copytree(keep, life.target.root, symlinks=True)
        killed, _ = killed_at(point, lambda countdown: _with(countdown, life, act))
        assert killed, point
        life.stands()
        assert life.systemd.running() in (ran, runs, ""), point
        if point % 2 or scene.startswith("rollback"):  # a second roll-back would go forth again
            life.target.said.clear()
            restore = life.gc if scene in ("gc", "upgrade-the-third") else life.settle
            _next_command_restores(life, restore, (before, after), (ran, runs))
        else:
            _again(life, act)
            assert (_drop_empty(life.files()), life.systemd.running()) == (_drop_empty(after), runs), point
        life.settled()


def _with(countdown: Countdown, life: Life, act: Do) -> None:
    life.systemd.countdown = countdown
    act(life)


def _next_command_restores(
    life: Life,
    restore: Callable[[], None],
    trees: tuple[dict[str, bytes | str], dict[str, bytes | str]],
    ran: tuple[str, str],
) -> None:
    """After the next command all is as before, or as the change would have left it; and that is what runs."""
    with suppress(UsageError):  # nothing is installed, nor was begun
        restore()
    found = life.files()
    _drop_empty(found)
    wanted = [_drop_empty(dict(tree)) for tree in trees]
    assert found in wanted, {name: found.get(name) for name in wanted[0].keys() ^ found.keys()}
    assert life.systemd.running() == ran[wanted.index(found)], life.target.said


def _drop_empty(tree: dict[str, bytes | str]) -> dict[str, bytes | str]:
    """Without a lock that nobody holds and folders that hold nothing: what a kill between making the prefix and
    writing down what is under way leaves.
    """
    for name in [one for one in tree if one.split("/mini/")[-1].startswith((".lock", ".pending.json."))]:
        del tree[name]
    for name in sorted(tree, reverse=True):
        if tree[name] == "/" and name.startswith("opt/") and not any(one.startswith(f"{name}/") for one in tree):
            del tree[name]
    return tree


def _again(life: Life, act: Do) -> None:
    with suppress(UsageError):  # an uninstall that came far enough, a roll-back that was done
        act(life)


#: what was cut by power is looked at after a boot, so a service that was stopped by hand does not count
CUTS = ("install", "upgrade", "upgrade-the-third", "other-port", "rollback", "upgrade-beside", "gc", "uninstall")


@pytest.mark.parametrize("scene", CUTS)
def test_power_cut_between_any_two_syncs(life: Life, scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that keeps only what was synced, at every moment at which that changes."""
    prepare, act = SCENES[scene]
    prepare(life)
    platter = Platter(life.target.root)
    platter.sync()
    moments = [(platter.copy(), _own(life))]

    def note(call: Callable[[], None]) -> None:
        call()
        moments.append((platter.copy(), _own(life)))

    before = life.files()
    monkeypatch.setattr("os.fsync", lambda handle: note(lambda: platter.fsync(_number(handle))))
    monkeypatch.setattr("os.sync", lambda: note(platter.sync))
    act(life)
    monkeypatch.setattr("os.fsync", lambda _handle: None)
    monkeypatch.setattr("os.sync", lambda: None)
    after = life.files()
    assert len(moments) > (1 if scene in ("gc", "uninstall") else 5)
    for moment, own in moments:
        moment.power_cut(own)
        life.stands()
        life.systemd.reboot()
        restore = life.gc if scene in ("gc", "upgrade-the-third") else life.settle
        with suppress(UsageError):
            restore()
        wanted = [_drop_empty(dict(tree)) for tree in (before, after)]
        found = _drop_empty(life.files())
        if scene == "uninstall":  # its next command is an uninstall again, or nothing is left to uninstall
            _again(life, act)
            found = _drop_empty(life.files())
        assert found in wanted, life.target.said
        if (life.target.prefix / "current").is_symlink():
            assert life.systemd.running() == life.systemd.runnable()


def _own(life: Life) -> dict[str, bytes]:
    """What useradd and the like write and sync themselves."""
    return {f"etc/{name}": (life.target.root / "etc" / name).read_bytes() for name in ("passwd", "group")}


def _number(handle: object) -> int:
    return handle if isinstance(handle, int) else handle.fileno()  # type: ignore[attr-defined]
