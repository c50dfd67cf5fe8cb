"""Upgrade, roll-back, and which releases stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.install.conftest import Target, make_bundle, make_plan

from sampan.errors import IncompatibleError, MissingToolError, ServiceError, UsageError, VerificationError
from sampan.install import gc, lookup
from sampan.install.facts import read_record
from sampan.install.model import Installed, OwnLimits
from sampan.install.rollback import rollback
from sampan.install.source import from_folder
from sampan.install.steps import install, put


@pytest.fixture
def two(target: Target, bundle: Path, tmp_path: Path) -> Target:
    """Release 1 on port 9100, then release 2 with another limit on 9200."""
    install(target.options(bundle, port=9100), target.hands())
    newer = make_bundle(tmp_path / "mini-2", make_plan(release=2))
    wanted = target.options(newer, port=9200, limits=OwnLimits(memory_bytes=1 << 30, cpus="0-3"))
    install(wanted, target.hands())
    return target


def back(target: Target, wanted: int | None = None) -> Installed:
    """Roll ``mini`` back."""
    machine = lookup.find(None, prefix=target.prefix).machine(target.systemd, target.root)
    return rollback(target.prefix, wanted, machine, target.hands(), health_seconds=5)


def test_configuration_survives_an_upgrade(two: Target, tmp_path: Path) -> None:
    third = make_bundle(tmp_path / "mini-3", make_plan(release=3))
    record = put("upgrade", from_folder(third), two.options(third), two.hands())
    assert (record.port, record.limits, record.previous) == (9200, OwnLimits(1 << 30, None, "0-3"), 2)
    unit = two.unit.read_text()
    assert "--port 9200\n" in unit
    assert "MemoryMax=1024M\n" in unit
    assert "CPUAffinity=0-3\n" in unit
    assert "AllowedCPUs=0-3\n" in unit


def test_rolling_back_restores_code_configuration_and_unit(two: Target) -> None:
    record = back(two)
    assert (record.release, record.port, record.previous, record.limits) == (1, 9100, 2, OwnLimits())
    assert (two.prefix / "current").readlink() == Path("releases/1")
    assert "--port 9100\n" in two.unit.read_text()
    assert "AllowedCPUs" not in two.unit.read_text()
    assert read_record(two.prefix) == record
    forth = back(two)
    assert (forth.release, forth.port, forth.previous) == (2, 9200, 1)
    assert "--port 9200\n" in two.unit.read_text()


def test_rolling_back_to_what_does_not_serve_changes_nothing(two: Target) -> None:
    before = two.files()
    two.selftest_error = ServiceError("target.selftest", text="x", score="0.1", minimum=0.99)
    with pytest.raises(ServiceError):
        back(two)
    assert two.files() == before
    assert ("systemctl", "restart", "--no-block", "sampan-mini.service") in two.systemd.log[-2:]


def test_a_release_that_is_not_whole_is_not_returned_to(two: Target) -> None:
    (two.prefix / "releases/1/weights/tiny model.gguf").write_bytes(b"bit rot")
    before = two.files()
    with pytest.raises(VerificationError) as caught:
        back(two)
    assert caught.value.key == "install.release-damaged"
    assert two.files() == before


@pytest.mark.parametrize("wanted", [2, 7])
def test_only_another_release_that_is_there_can_be_returned_to(two: Target, wanted: int) -> None:
    with pytest.raises(UsageError) as caught:
        back(two, wanted)
    assert (caught.value.key, caught.value.values["there"]) == ("install.no-such-release", "1")


def test_after_a_first_installation_there_is_nothing_to_return_to(target: Target, bundle: Path) -> None:
    install(target.options(bundle), target.hands())
    with pytest.raises(UsageError, match="Release 1 is the first") as caught:
        back(target)
    assert (caught.value.key, caught.value.values["there"]) == ("install.no-earlier-release", "-")


def test_an_older_release_is_refused_unless_a_person_says_so_and_that_is_recorded(two: Target, bundle: Path) -> None:
    with pytest.raises(IncompatibleError, match="--allow-downgrade"):
        install(two.options(bundle), two.hands())
    record = install(two.options(bundle, allow_downgrade=True, unsigned=True, who="li (uid 0)"), two.hands())
    said = [(each.what, each.by, each.release, each.instead_of) for each in record.overrides]
    assert said == [("downgrade", "li (uid 0)", 1, 2), ("unsigned", "li (uid 0)", 1, 2)]
    assert record.previous == 2
    later = back(two)
    assert later.overrides == record.overrides, "a roll-back does not forget"


def test_two_releases_are_kept(two: Target, tmp_path: Path) -> None:
    third = make_bundle(tmp_path / "mini-3", make_plan(release=3))
    install(two.options(third), two.hands())
    assert gc.numbers(two.prefix) == (3, 2)
    assert sorted(path.name for path in (two.prefix / "config").iterdir()) == ["2", "3"]
    listed = gc.releases(lookup.find(None, prefix=two.prefix).record or pytest.fail("nothing installed"))
    assert [(one.release, one.current, one.previous) for one in listed.releases] == [
        (3, True, False),
        (2, False, True),
    ]


@pytest.mark.parametrize(
    ("there", "current", "previous", "keep", "gone"),
    [
        ((3, 2, 1), 3, 2, 2, (1,)),
        ((3, 2, 1), 1, 3, 2, (2,)),
        ((3, 2, 1), 2, None, 2, (1,)),
        ((9, 3, 2, 1), 3, 2, 3, (1,)),
        ((3, 2), 3, 2, 1, ()),
        ((5,), 5, 4, 2, ()),
    ],
)
def test_neither_the_current_nor_the_previous_release_ever_goes(
    there: tuple[int, ...], current: int, previous: int | None, keep: int, gone: tuple[int, ...]
) -> None:
    assert gc.removable(there, current, previous, keep) == gone


def test_the_release_that_the_command_runs_from_stays(
    two: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMPAN_BUNDLE", str(two.prefix / "releases/1"))
    third = make_bundle(tmp_path / "mini-3", make_plan(release=3))
    install(two.options(third), two.hands())
    assert gc.numbers(two.prefix) == (3, 2, 1)
    assert any("Release 1 stays for now" in line for line in two.said)
    monkeypatch.delenv("SAMPAN_BUNDLE")
    machine = lookup.find(None, prefix=two.prefix).machine(two.systemd, two.root)
    assert gc.gc(two.prefix, 2, machine, two.hands()).removed == (1,)


def test_whoever_may_not_write_there_is_told_so(two: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = lookup.find(None, prefix=two.prefix).machine(two.systemd, two.root)
    monkeypatch.setattr("os.access", lambda *_: False)
    for act in (lambda: back(two), lambda: gc.gc(two.prefix, 2, machine, two.hands())):
        with pytest.raises(MissingToolError) as caught:
            act()
        assert (caught.value.key, caught.value.exit_code) == ("install.needs-root", 5)


def test_an_upgrade_of_what_is_not_installed_is_refused(target: Target, bundle: Path) -> None:
    before = target.files()
    with pytest.raises(UsageError) as caught:
        put("upgrade", from_folder(bundle), target.options(bundle), target.hands())
    assert caught.value.key == "install.not-installed"
    assert target.files() == before


def test_a_copy_that_nobody_vouches_for_leaves_nothing(two: Target, tmp_path: Path) -> None:
    third = make_bundle(tmp_path / "mini-3", make_plan(release=3))
    before = two.files()

    def refuse(copy: Path) -> None:
        assert (copy / "sampan").is_file()
        raise VerificationError("install.untrusted", path=str(third), why="x")

    with pytest.raises(VerificationError):
        put("upgrade", replace(from_folder(third), prove=refuse), two.options(third), two.hands())
    assert two.files() == before
    assert not any(words[0].endswith("3/sampan") for words in two.systemd.log), "nothing of it ran"


def test_everything_that_stands_against_a_return_is_said_at_once_and_nothing_changed(two: Target) -> None:
    machine = lookup.find(None, prefix=two.prefix).machine(two.systemd, two.root)
    (two.root / "proc/meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 100 kB\n")
    other = "  0: 0100007F:238C 00000000:0000 0A 0 0 0\n"  # port 9100, which release 1 had, is another's by now
    (two.root / "proc/net/tcp").write_text(f"head\n{other}")
    before = two.files()
    with pytest.raises(IncompatibleError) as caught:
        rollback(two.prefix, None, machine, two.hands(), health_seconds=5, features=frozenset())
    assert caught.value.values["codes"] == "cpu,memory,port"
    assert two.files() == before
    assert read_record(two.prefix) is not None
