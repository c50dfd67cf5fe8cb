"""install on a pretended machine: what it leaves, and that a failed step leaves nothing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.install.conftest import Target, make_bundle, make_plan, seal

from sampan.errors import (
    BadInputError,
    FilesystemError,
    IncompatibleError,
    MissingToolError,
    ServiceError,
    VerificationError,
)
from sampan.install.facts import read_record
from sampan.install.steps import install


def test_a_service_is_installed_started_and_recorded(target: Target, bundle: Path) -> None:
    record = install(target.options(bundle, port=9100), target.hands())
    release = target.prefix / "releases/1"
    assert (target.prefix / "current").readlink() == Path("releases/1")
    assert (release / "weights/tiny model.gguf").read_bytes() == (bundle / "weights/tiny model.gguf").read_bytes()
    assert (release / "SHA256SUMS").read_bytes() == (bundle / "SHA256SUMS").read_bytes()
    assert f"ExecStart={target.prefix}/current/sampan serve --host 127.0.0.1 --port 9100\n" in target.unit.read_text()
    assert target.systemd.called("systemctl", "enable", "sampan-mini.service")
    assert "sampan-mini:" in (target.root / "etc/passwd").read_text()
    assert (record.state, record.port, record.user, record.user_created) == ("installed", 9100, "sampan-mini", True)
    assert read_record(target.prefix) == record
    assert any("3 of 3 right" in line for line in target.said)
    assert "http://127.0.0.1:9100/v1" in target.said[-1]


def test_modes_are_explicit_whatever_the_umask(target: Target, bundle: Path) -> None:
    (bundle / "plan.json").chmod(0o600)
    before = os.umask(0o077)
    try:
        install(target.options(bundle), target.hands())
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(target.prefix)): stat.S_IMODE(path.stat().st_mode)
        for path in (target.prefix, *target.prefix.rglob("*"))
        if not path.is_symlink()
    }
    programs = {".", "config", "config/1", "releases", "releases/1", "releases/1/weights", "releases/1/sampan"}
    assert {name for name, mode in modes.items() if mode == 0o755} == programs
    assert {mode for name, mode in modes.items() if name not in programs} == {0o644}
    assert stat.S_IMODE(target.unit.stat().st_mode) == 0o644


def test_without_a_service_only_files_are_laid_down(target: Target, bundle: Path) -> None:
    record = install(target.options(bundle, service=False), target.hands())
    assert (target.prefix / "current/sampan").is_file()
    assert not target.unit.exists()
    assert not any(words[0] in ("useradd", "groupadd") for words in target.systemd.log)
    assert target.said[-1].endswith(f"{target.prefix}/current/start.sh")
    assert (record.service, record.unit, record.user) == (False, None, None)


def test_the_same_release_again_changes_nothing_and_does_not_interrupt(target: Target, bundle: Path) -> None:
    install(target.options(bundle), target.hands())
    before, pid = target.files(), target.systemd.state["MainPID"]
    install(target.options(bundle), target.hands())
    assert target.files() == before
    assert target.systemd.state["MainPID"] == pid


def test_it_can_be_installed_from_the_installed_release_itself(target: Target, bundle: Path) -> None:
    install(target.options(bundle), target.hands())
    again = install(target.options(target.prefix / "current", port=9200), target.hands())
    assert again.port == 9200
    assert "--port 9200" in target.unit.read_text()


def test_a_damaged_release_is_put_right(target: Target, bundle: Path) -> None:
    install(target.options(bundle), target.hands())
    broken = target.prefix / "releases/1/weights/tiny model.gguf"
    broken.write_bytes(b"bit rot")
    install(target.options(bundle), target.hands())
    assert broken.read_bytes() == (bundle / "weights/tiny model.gguf").read_bytes()
    assert sorted(path.name for path in (target.prefix / "releases").iterdir()) == ["1"]


def test_a_newer_release_takes_over_beside_the_old_one(target: Target, bundle: Path, tmp_path: Path) -> None:
    install(target.options(bundle), target.hands())
    newer = make_bundle(tmp_path / "mini-2", make_plan(release=2))
    record = install(target.options(newer), target.hands())
    assert (target.prefix / "current").readlink() == Path("releases/2")
    assert (target.prefix / "releases/1/sampan").is_file()
    assert (record.release, record.user_created) == (2, True)


def test_the_answer_of_the_old_process_does_not_count(target: Target, bundle: Path, tmp_path: Path) -> None:
    install(target.options(bundle), target.hands())
    newer = make_bundle(tmp_path / "mini-2", make_plan(release=2))
    old_pid = target.systemd.state["MainPID"]
    pids: list[str] = []
    real = target.systemd.run

    def slow(argv: list[str], **rest: object) -> object:  # the first two looks still see the old process
        done = real(argv, **rest)  # type: ignore[arg-type]
        if argv[1] == "show":
            pids.append(old_pid if len(pids) < 3 else target.systemd.state["MainPID"])
            return replace(done, output=f"ActiveState=active\nSubState=running\nMainPID={pids[-1]}\n")
        return done

    target.systemd.run = slow  # type: ignore[assignment,method-assign]
    install(target.options(newer), target.hands())
    assert pids[-1] != old_pid


def test_a_kill_in_the_middle_is_no_hindrance_for_the_next_run(target: Target, bundle: Path) -> None:
    left = target.prefix / "releases/.1.partial"
    install(target.options(bundle), target.hands())
    (target.prefix / "releases/1").rename(left)  # as if killed while copying over a removed release
    install(target.options(bundle), target.hands())
    assert (target.prefix / "releases/1/sampan").is_file()
    assert not left.exists()


@pytest.mark.parametrize("step", ["enable", "daemon-reload", "restart", "--system", "refused"])
def test_a_step_that_fails_leaves_nothing_behind(target: Target, bundle: Path, step: str) -> None:
    before = target.files()
    target.systemd.failing = frozenset({step})
    with pytest.raises((ServiceError, IncompatibleError)):
        install(target.options(bundle), target.hands())
    assert target.files() == before


@pytest.mark.parametrize("started", ["failed", "activating"])
def test_a_service_that_dies_at_once_is_taken_back_with_its_last_words(
    target: Target, bundle: Path, started: str
) -> None:
    before = target.files()
    target.systemd.started = started
    target.health = "unreachable"
    with pytest.raises(ServiceError, match="last words") as caught:
        install(target.options(bundle), target.hands())
    assert caught.value.key == "install.not-healthy"
    assert target.files() == before
    assert target.systemd.called("systemctl", "stop", "sampan-mini.service")


def test_a_service_that_never_answers_is_given_up_in_time(target: Target, bundle: Path) -> None:
    target.health = "starting"
    with pytest.raises(ServiceError, match="starting"):
        install(target.options(bundle, health_seconds=0.05), target.hands())


def test_a_wrong_answer_brings_the_old_release_back(target: Target, bundle: Path, tmp_path: Path) -> None:
    install(target.options(bundle), target.hands())
    before = target.files()
    newer = make_bundle(tmp_path / "mini-2", make_plan(release=2))
    target.selftest_error = ServiceError("target.selftest", text="x", score="0.1", minimum=0.99)
    with pytest.raises(ServiceError):
        install(target.options(newer, port=9300), target.hands())
    assert target.files() == before
    assert ("systemctl", "restart", "--no-block", "sampan-mini.service") in target.systemd.log[-2:]


def test_an_interruption_is_undone_too(target: Target, bundle: Path) -> None:
    before = target.files()
    target.selftest_error = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        install(target.options(bundle), target.hands())
    assert target.files() == before


def test_no_account_tool_is_named(target: Target, bundle: Path) -> None:
    before = target.files()
    target.systemd.missing = frozenset({"useradd", "adduser", "groupadd", "addgroup", "getent"})
    with pytest.raises(MissingToolError):
        install(target.options(bundle), target.hands())
    assert target.files() == before


def test_a_file_that_changed_since_packing_is_refused(target: Target, bundle: Path) -> None:
    before = target.files()
    (bundle / "weights/tiny model.gguf").write_bytes(b"GGUG" * 1000)
    with pytest.raises(VerificationError, match="tiny model") as caught:
        install(target.options(bundle), target.hands())
    assert caught.value.key == "install.changed-file"
    assert target.files() == before


class FullDisk:
    """See ports.Progress: a disk that is full after the first file."""

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[FullDisk]:  # noqa: ARG002
        """Show nothing."""
        yield self

    def advance(self, amount: float = 1) -> None:  # noqa: ARG002
        """As the next write would."""
        raise OSError(errno.ENOSPC, "No space left on device", "/opt/sampan/mini/x")

    def update(self, *, completed: float | None = None, total: float | None = None, note: str = "") -> None:
        """Show nothing."""


def test_a_disk_that_fills_up_while_copying_is_left_as_it_was(target: Target, bundle: Path) -> None:
    before = target.files()
    with pytest.raises(FilesystemError) as caught:
        install(target.options(bundle), replace(target.hands(), progress=FullDisk()))
    assert (caught.value.key, caught.value.exit_code) == ("install.disk-full", 8)
    assert target.files() == before


def test_what_cannot_be_taken_back_is_said_and_the_rest_is_taken_back(
    target: Target, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sampan.install.account.remove", _refuse)
    target.systemd.started = "failed"
    with pytest.raises(ServiceError):
        install(target.options(bundle), target.hands())
    assert any("userdel: busy" in line for line in target.said)
    assert not target.unit.exists()
    assert [path.name for path in target.prefix.iterdir()] == ["pending.json"], "for the next command to try again"
    monkeypatch.undo()


def _refuse(*_args: object) -> bool:
    raise OSError(errno.EBUSY, "userdel: busy")


def test_missing_extra_and_odd_files_are_refused_by_name(target: Target, bundle: Path) -> None:
    (bundle / "extra.so").write_text("x")
    with pytest.raises(VerificationError, match=r"extra\.so"):
        install(target.options(bundle), target.hands())
    (bundle / "extra.so").unlink()
    (bundle / "link").symlink_to("sampan")
    with pytest.raises(VerificationError, match="link"):
        install(target.options(bundle), target.hands())
    (bundle / "link").unlink()
    (bundle / "weights/tiny model.gguf").unlink()
    with pytest.raises(VerificationError, match="tiny model"):
        install(target.options(bundle), target.hands())


def test_a_list_that_leaves_the_bundle_is_refused(target: Target, bundle: Path) -> None:
    with (bundle / "SHA256SUMS").open("a") as stream:
        stream.write(f"{'0' * 64}  ../../etc/passwd\n")
    with pytest.raises(BadInputError) as caught:
        install(target.options(bundle), target.hands())
    assert (caught.value.key, caught.value.exit_code) == ("install.sums", 3)


def test_a_folder_that_is_no_bundle_is_said_to_be_none(target: Target, tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        install(target.options(tmp_path), target.hands())
    assert caught.value.key == "install.no-bundle"


def test_another_bundle_under_the_same_release_number_is_refused(
    target: Target, bundle: Path, tmp_path: Path
) -> None:
    install(target.options(bundle), target.hands())
    other = make_bundle(tmp_path / "other", make_plan())
    (other / "weights/tiny model.gguf").write_bytes(b"other")
    with pytest.raises(IncompatibleError, match="release-differs"):
        install(target.options(seal(other)), target.hands())
