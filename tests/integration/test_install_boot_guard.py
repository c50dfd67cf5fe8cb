"""Power cuts in the middle of an upgrade or a roll-back: the boot itself takes the change back before it serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.kills import LastingSystemd, Platter
from tests.integration import test_install_killed as killed
from tests.integration.test_install_killed import SCENES, Life
from tests.unit.install import conftest
from tests.unit.install.conftest import FakeSystemd

from sampan.install import boot_guard
from sampan.install.facts import read_record
from sampan.install.journal import Pending
from sampan.install.machine import Machine
from sampan.install.model import SCRIPT, USER

pytestmark = pytest.mark.integration
target = conftest.target
life = killed.life

GUARD, LINK = "sampan_recover-mini.service", "sampan-mini.service.wants/sampan_recover-mini.service"


@dataclass
class Boot:
    """What systemd would do at boot with the units that are on the disk; ``unit`` are the directives of the guard."""

    life: Life

    @property
    def units(self) -> Path:
        """Where they are."""
        return self.life.target.unit.parent

    def guard(self) -> dict[str, str]:
        """The directives of the guard that this boot runs; none where it runs none."""
        link = self.units / LINK
        if not link.is_symlink() or not link.exists():
            return {}
        lines = [line.partition("=") for line in link.read_text(encoding="utf-8").splitlines() if "=" in line]
        found = {key: value for key, _, value in lines}
        return found if Path(found["ConditionPathExists"]).exists() else {}

    def start(self) -> bool:
        """Guard first, then the service; whether the guard ran."""
        found = self.guard()
        (self.life.target.root / "run/state.json").unlink(missing_ok=True)  # nothing runs yet
        if found:
            program, verb, option, prefix = found["ExecStart"].split()
            assert (verb, option, prefix) == ("recover", "--prefix", str(self.life.target.prefix))
            assert Path(program).is_file()
            assert found["Before"] == "sampan-mini.service"
            self.life.settle()
        self.life.systemd.reboot()
        return bool(found)


def _moments(life: Life, act: Callable[[Life], None], monkeypatch: pytest.MonkeyPatch) -> list[Platter]:
    """What the disk holds for good, each time that this changes while ``act`` is done."""
    platter = Platter(life.target.root)
    platter.sync()
    found = [platter.copy()]

    def note(call: Callable[[], None]) -> None:
        call()
        found.append(platter.copy())

    with monkeypatch.context() as during:
        during.setattr("os.fsync", lambda handle: note(lambda: platter.fsync(handle)))
        during.setattr("os.sync", lambda: note(platter.sync))
        act(life)
    return found


@pytest.mark.parametrize("scene", ["upgrade", "upgrade-the-third", "other-port", "rollback"])
def test_a_boot_in_the_middle_serves_what_is_in_force_without_any_command(
    life: Life, scene: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, act = SCENES[scene]
    prepare(life)
    own = {f"etc/{name}": (life.target.root / "etc" / name).read_bytes() for name in ("passwd", "group")}
    ran, guarded = life.systemd.running(), 0
    before = read_record(life.target.prefix)
    moments = _moments(life, act, monkeypatch)
    runs, after = life.systemd.running(), read_record(life.target.prefix)
    assert Boot(life).guard() == {}
    assert not (life.target.unit.parent / GUARD).exists()
    for moment in moments:
        moment.power_cut(own)
        guarded += Boot(life).start()
        found = read_record(life.target.prefix)
        assert (life.systemd.running(), found) in ((ran, before), (runs, after)), life.target.said
        life.settle()
        assert not (life.target.unit.parent / GUARD).exists()
        assert not (life.target.unit.parent / LINK).parent.exists()
    assert guarded > 2


def test_a_first_installation_has_nothing_to_return_to(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[bool] = []
    real = LastingSystemd.run

    def look(self: LastingSystemd, *args: object, **rest: object) -> object:
        armed.append((life.target.unit.parent / GUARD).exists())
        return real(self, *args, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LastingSystemd, "run", look)
    life.install(1)
    assert not any(armed)
    armed.clear()
    life.install(2)
    assert any(armed)


def test_the_guard_of_a_users_own_systemd_is_beside_the_users_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    machine = Machine(FakeSystemd(tmp_path), tmp_path, USER, tmp_path)
    machine.unit_file("mini").parent.mkdir(parents=True)
    boot_guard.arm(tmp_path, _pending(USER), machine)
    link = tmp_path / "systemd/user" / LINK
    assert f"ExecStart={tmp_path}/releases/1/sampan recover" in link.read_text(encoding="utf-8")
    boot_guard.disarm(tmp_path, "mini", machine)
    assert [path.name for path in tmp_path.rglob("*mini*")] == []


def test_the_guard_of_a_script_is_a_link_to_the_release_before(tmp_path: Path) -> None:
    machine = Machine(FakeSystemd(tmp_path), tmp_path, SCRIPT, tmp_path)
    boot_guard.arm(tmp_path, _pending(SCRIPT), machine)
    assert (tmp_path / ".before").readlink() == Path("releases/1")
    boot_guard.disarm(tmp_path, "mini", machine)
    assert list(tmp_path.iterdir()) == []


def _pending(scope: str) -> Pending:
    """An upgrade from release 1 to 2."""
    return Pending("upgrade", "mini", 2, True, scope, None, "releases/1", "text", True, True, True, False)
