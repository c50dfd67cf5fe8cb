"""status, start, stop and uninstall of what was installed, and of a server in the foreground."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.install.conftest import Target, make_bundle, make_plan, put_keys

from sampan.errors import BadInputError, MissingToolError, ServiceError, UsageError
from sampan.install import foreground, lookup, service
from sampan.install.machine import Machine
from sampan.install.model import Health
from sampan.install.steps import install
from sampan.install.uninstall import uninstall


def healthy(host: str, port: int, _tls: bool) -> Health:
    """A service that answers."""
    return Health("ready", f"{host}:{port}")


@pytest.fixture
def installed(target: Target, bundle: Path, tmp_path: Path) -> Target:
    """``mini`` as a service on port 9100 that asks for keys."""
    keys = str(put_keys(tmp_path / "keys.json"))
    install(target.options(bundle, port=9100, host="0.0.0.0", keys=keys), target.hands())
    return target


@pytest.fixture
def in_terminal(
    tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, Machine, int]]:
    """A process that looks like `sampan serve`, and its pid file."""
    script = tmp_path / "sampan"
    script.write_text("#!/bin/sh\nexec 3<&0\nread -r never <&3\n")
    script.chmod(0o755)
    process = subprocess.Popen(["/bin/sh", str(script), "serve"], stdin=subprocess.PIPE)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/sampan.pid").write_text(f"{process.pid}\n")
    yield tmp_path / "run", Machine(target.systemd), process.pid
    process.kill()
    process.communicate()


def test_status_says_what_systemd_and_the_service_say(installed: Target, tmp_path: Path) -> None:
    installed.systemd.state |= {
        "UnitFileState": "enabled",
        "NRestarts": "2",
        "MemoryCurrent": "1048576",
        "ActiveEnterTimestamp": "Mon 2026-11-30 10:00:00 UTC",
    }
    found = lookup.find(installed.prefix / "current")
    status = service.status(found, Machine(installed.systemd, installed.root), healthy, tmp_path)
    assert (status.name, status.release, status.mode, status.state) == ("mini", 1, "systemd", "active")
    assert (status.enabled, status.pid, status.restarts, status.memory_bytes) == (True, 101, 2, 1 << 20)
    assert (status.health, status.health_detail) == ("ready", "127.0.0.1:9100")
    assert status.since == "Mon 2026-11-30 10:00:00 UTC"


def test_what_an_old_systemd_does_not_know_is_unknown(installed: Target, tmp_path: Path) -> None:
    installed.systemd.state = {"ActiveState": "inactive", "MainPID": "0", "MemoryCurrent": "[not set]"}
    found = lookup.find(None, prefix=installed.prefix)
    status = service.status(found, Machine(installed.systemd, installed.root), healthy, tmp_path)
    assert (status.pid, status.restarts, status.memory_bytes, status.since) == (None, None, None, None)


def test_a_stopped_service_says_since_when_it_is(installed: Target, tmp_path: Path) -> None:
    installed.systemd.state |= {
        "ActiveState": "inactive",
        "ActiveEnterTimestamp": "Mon 2026-11-30 10:00:00 UTC",
        "InactiveEnterTimestamp": "Mon 2026-11-30 11:00:00 UTC",
    }
    found = lookup.find(None, prefix=installed.prefix)
    status = service.status(found, Machine(installed.systemd, installed.root), healthy, tmp_path)
    assert status.since == "Mon 2026-11-30 11:00:00 UTC"


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_what_only_root_may_do_is_said_in_our_words(
    installed: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    found, machine = lookup.find(None, prefix=installed.prefix), Machine(installed.systemd, installed.root)
    installed.systemd.failing = frozenset((verb,))
    act: dict[str, Callable[[], object]] = {
        "start": lambda: service.start(found, machine),
        "stop": lambda: service.stop(found, machine, tmp_path),
        "restart": lambda: service.restart(found, machine),
    }
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(MissingToolError, match=f"sudo ./sampan {verb}"):
        act[verb]()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(ServiceError, match="it went wrong"):
        act[verb]()


def test_a_failed_start_quotes_nothing_of_an_earlier_run(installed: Target) -> None:
    began = time.monotonic() - 90
    installed.systemd.state["InactiveExitTimestampMonotonic"] = str(int(began * 1e6))
    assert Machine(installed.systemd, installed.root).journal("mini") == "last words"
    since = next(word for word in installed.systemd.log[-1] if word.startswith("--since=-"))
    assert 90 <= int(since[len("--since=-") : -1]) <= 95


def test_the_service_is_found_by_prefix_by_release_and_by_bundle(installed: Target, tmp_path: Path) -> None:
    by_prefix = lookup.find(None, prefix=installed.prefix)
    assert by_prefix == lookup.find(installed.prefix / "releases/1")
    elsewhere = lookup.find(make_bundle(tmp_path / "other-7", make_plan("other", 7)))
    assert (elsewhere.name, elsewhere.record) == ("other", None)


def test_what_is_not_installed_is_said_to_be_so(target: Target, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        lookup.find(None, prefix=tmp_path / "nowhere")
    assert (caught.value.key, caught.value.exit_code) == ("install.not-installed", 2)
    with pytest.raises(UsageError, match="Which service"):
        lookup.find(None)


def test_a_damaged_record_is_an_error_that_names_it(installed: Target) -> None:
    (installed.prefix / "installed.json").write_text('{"schema": "sampan/inst')
    with pytest.raises(BadInputError, match=r"installed\.json"):
        lookup.find(None, prefix=installed.prefix)


def test_stop_and_start_go_through_systemd(installed: Target, tmp_path: Path) -> None:
    found, machine = lookup.find(installed.prefix / "current"), Machine(installed.systemd, installed.root)
    assert service.stop(found, machine, tmp_path)
    assert not service.stop(found, machine, tmp_path)
    service.start(found, machine)
    assert installed.systemd.state["ActiveState"] == "active"
    installed.systemd.failing = frozenset({"start"})
    with pytest.raises(ServiceError, match="last words"):
        service.start(found, machine)


def test_start_without_a_unit_says_what_to_type(target: Target, bundle: Path) -> None:
    install(target.options(bundle, service=False), target.hands())
    with pytest.raises(UsageError, match=r"current/start\.sh"):
        service.start(lookup.find(target.prefix / "current"), Machine(target.systemd, target.root))


def test_a_foreground_server_is_found_and_ended(bundle: Path, in_terminal: tuple[Path, Machine, int]) -> None:
    folder, machine, pid = in_terminal
    found = lookup.find(bundle)
    assert service.status(found, machine, healthy, folder).pid == pid
    assert service.status(found, machine, healthy, folder).mode == "foreground"
    assert service.stop(found, machine, folder)
    assert service.status(found, machine, healthy, folder).state == "inactive"
    assert not service.stop(found, machine, folder)


def test_a_foreground_server_is_asked_where_it_listens(bundle: Path, in_terminal: tuple[Path, Machine, int]) -> None:
    folder, machine, pid = in_terminal
    (folder / "sampan.pid").write_text(foreground.pid_text(foreground.Foreground(pid, "0.0.0.0", 8181)))
    status = service.status(lookup.find(bundle), machine, healthy, folder)
    assert (status.pid, status.host, status.port) == (pid, "0.0.0.0", 8181)
    assert status.health_detail == "127.0.0.1:8181"
    assert service.stop(lookup.find(bundle), machine, folder)
    after = service.status(lookup.find(bundle), machine, healthy, folder)
    assert (after.pid, after.port) == (None, lookup.find(bundle).port), "the file of a dead process says nothing"


@pytest.mark.parametrize("rest", ["", "\n127.0.0.1", "\n127.0.0.1\n0", "\n127.0.0.1\n70000", "\n\n8181", "\nx\nport"])
def test_a_pid_file_without_a_port_leaves_the_planned_one(
    bundle: Path, in_terminal: tuple[Path, Machine, int], rest: str
) -> None:
    folder, machine, pid = in_terminal
    (folder / "sampan.pid").write_text(f"{pid}{rest}")
    found = lookup.find(bundle)
    status = service.status(found, machine, healthy, folder)
    assert (status.pid, status.host, status.port) == (pid, found.host, found.port)


def test_an_installed_unit_is_asked_at_its_port(installed: Target, in_terminal: tuple[Path, Machine, int]) -> None:
    folder, _, pid = in_terminal
    (folder / "sampan.pid").write_text(foreground.pid_text(foreground.Foreground(pid, "127.0.0.1", 8181)))
    found = lookup.find(installed.prefix / "current")
    assert service.status(found, Machine(installed.systemd, installed.root), healthy, folder).port == 9100


@pytest.mark.parametrize("text", ["", "1", "99999999", "-1", "no number"])
def test_a_pid_file_that_names_another_process_harms_nobody(
    bundle: Path, in_terminal: tuple[Path, Machine, int], text: str
) -> None:
    folder, machine, pid = in_terminal
    (folder / "sampan.pid").write_text(text)
    assert not service.stop(lookup.find(bundle), machine, folder)
    assert machine.alive(pid)


def test_uninstall_takes_away_all_that_install_made(target: Target, bundle: Path) -> None:
    before = target.files()
    install(target.options(bundle), target.hands())
    target.said.clear()
    removed = uninstall(lookup.find(target.prefix / "current"), target.hands())
    assert target.files() == before
    assert removed.kept == ()
    assert str(target.unit) in removed.removed
    assert "user sampan-mini" in removed.removed
    assert len(target.said) == len(removed.removed)
    assert target.systemd.called("systemctl", "disable", "sampan-mini.service")
    assert target.systemd.state["ActiveState"] == "inactive"


def test_uninstall_leaves_what_others_put_into_the_prefix(installed: Target) -> None:
    (installed.prefix / "notes.txt").write_text("mine")
    removed = uninstall(lookup.find(None, prefix=installed.prefix), installed.hands())
    assert removed.kept == (str(installed.prefix / "notes.txt"),)
    assert (installed.prefix / "notes.txt").read_text() == "mine"
    assert not (installed.prefix / "releases").exists()


def test_uninstall_names_the_keys_that_the_machine_goes_on_trusting(installed: Target) -> None:
    trusted = installed.root / "etc/sampan/trusted-keys"
    trusted.mkdir(parents=True)
    removed = uninstall(lookup.find(None, prefix=installed.prefix), installed.hands(), purge=True)
    assert removed.kept == (str(trusted),)
    assert trusted.is_dir()


def test_uninstall_keeps_a_user_that_was_there_before(target: Target, bundle: Path) -> None:
    with (target.root / "etc/passwd").open("a") as stream:
        stream.write("sampan-mini:x:500:500::/:/bin/false\n")
    install(target.options(bundle), target.hands())
    uninstall(lookup.find(None, prefix=target.prefix), target.hands())
    assert "sampan-mini:" in (target.root / "etc/passwd").read_text()


def test_uninstall_of_a_second_service_does_not_touch_the_first(installed: Target, tmp_path: Path) -> None:
    other = make_bundle(tmp_path / "other-1", make_plan("other"))
    prefix = installed.root / "opt/sampan/other"
    install(installed.options(other, prefix=prefix), installed.hands())
    uninstall(lookup.find(None, prefix=prefix), installed.hands())
    assert (installed.prefix / "current/sampan").is_file()
    assert installed.unit.is_file()
    assert not prefix.exists()


def test_uninstall_can_be_repeated_after_a_stop_in_the_middle(installed: Target) -> None:
    found = lookup.find(None, prefix=installed.prefix)
    installed.systemd.failing = frozenset({"daemon-reload"})
    with pytest.raises(ServiceError):
        uninstall(found, installed.hands())
    installed.systemd.failing = frozenset()
    uninstall(lookup.find(None, prefix=installed.prefix), installed.hands())
    assert not installed.prefix.exists()


def test_uninstall_of_a_bundle_that_is_not_installed_is_refused(target: Target, bundle: Path) -> None:
    with pytest.raises(UsageError):
        uninstall(lookup.find(bundle), target.hands())
