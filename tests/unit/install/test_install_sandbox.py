"""Limits as they are typed, and the command that holds them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.install.conftest import make_plan
from tests.unit.install.test_install_unit import FACTS

from sampan.cli.limits import own_limits
from sampan.errors import UsageError
from sampan.install import sandbox, script
from sampan.install.machine import Machine
from sampan.install.model import SCRIPT, USER, OwnLimits
from sampan.install.unit import limits, render

FREE = frozenset(range(8))


def test_limits_are_read_as_people_write_them() -> None:
    assert own_limits("4G", 4, "0-3,8") == OwnLimits(4 << 30, 400, "0-3,8")
    assert own_limits(None, 1.5, None) == OwnLimits(None, 150, None)
    assert own_limits(None, None, None) == OwnLimits()


@pytest.mark.parametrize(
    ("memory", "cpu_list"), [("4X", None), ("1M", None), (None, "0-"), (None, "a"), (None, "0;rm -rf /"), (None, "")]
)
def test_nonsense_is_refused(memory: str | None, cpu_list: str | None) -> None:
    with pytest.raises(UsageError):
        own_limits(memory, None, cpu_list)


@pytest.mark.parametrize(
    ("systemd", "root", "delegated", "words"),
    [
        (247, True, False, "systemd-run --scope --quiet -p MemoryMax=4096M -p CPUQuota=200% -- sampan serve"),
        (219, True, False, "systemd-run --scope --quiet -p MemoryLimit=4096M -p CPUQuota=200% -- sampan serve"),
        (247, False, True, "systemd-run --user --scope --quiet -p MemoryMax=4096M -p CPUQuota=200% -- sampan serve"),
    ],
)
def test_a_scope_holds_them_where_systemd_may(systemd: int, root: bool, delegated: bool, words: str) -> None:
    own = OwnLimits(4 << 30, 200, "0-3")
    found = sandbox.bounds(("sampan", "serve"), own, systemd=systemd, root=root, delegated=delegated, free=FREE)
    assert " ".join(found.command) == words
    assert (found.cpus, found.data_bytes) == (frozenset({0, 1, 2, 3}), None)


@pytest.mark.parametrize(("systemd", "delegated"), [(None, False), (247, False), (204, True)])
def test_elsewhere_each_process_is_bounded_by_itself(systemd: int | None, delegated: bool) -> None:
    own = OwnLimits(4 << 30, 250, None)
    found = sandbox.bounds(("sampan", "serve"), own, systemd=systemd, root=False, delegated=delegated, free=FREE)
    assert found == sandbox.Bounds(("sampan", "serve"), frozenset({0, 1}), 4 << 30)


def test_cpus_that_are_not_there_are_no_limit() -> None:
    found = sandbox.bounds(("x",), OwnLimits(cpus="64-65"), systemd=None, root=False, delegated=False, free=FREE)
    assert found.cpus is None


def test_an_administrators_limits_go_before_the_plans() -> None:
    plan = replace(make_plan(), memory_limit_bytes=1 << 30, cpu_quota_percent=300)
    assert (limits(plan).memory_bytes, limits(plan).cpu_percent) == (1 << 30, 300)
    own = limits(plan, OwnLimits(2 << 30, 150, "4-7"))
    assert (own.memory_bytes, own.cpu_percent, own.cpus) == (2 << 30, 150, "4-7")
    text = render(replace(FACTS, limits=own, systemd=244))
    assert {"MemoryMax=2048M", "CPUQuota=150%", "CPUAffinity=4-7", "AllowedCPUs=4-7"} <= set(text.splitlines())
    assert "AllowedCPUs" not in render(replace(FACTS, limits=own, systemd=243))


def test_a_users_unit_asks_for_nothing_that_needs_root() -> None:
    text = render(replace(FACTS, scope=USER, keys="/home/li/keys 100%.json".replace(" ", "_")))
    lines = text.splitlines()
    assert "WantedBy=default.target" in lines
    assert "Environment=RUNTIME_DIRECTORY=%t/sampan-mini" in lines
    assert any(line.endswith(" --keys /home/li/keys_100%%.json") for line in lines)
    for word in ("User=", "Group=", "CapabilityBoundingSet", "ProtectSystem", "PrivateTmp"):
        assert not any(line.startswith(word) for line in lines)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_script_is_one_that_a_shell_takes_and_survives_odd_folders(tmp_path: Path, shell: str) -> None:
    prefix = tmp_path / "it's a $(touch pwned) folder"
    prefix.mkdir()
    text = script.render(replace(FACTS, scope=SCRIPT, prefix=prefix))
    (prefix / "service.sh").write_text(text)
    assert not re.search("@[A-Z]+@", text)
    done = subprocess.run([shell, str(prefix / "service.sh"), "show"], capture_output=True, text=True, check=False)
    assert done.stdout == "ActiveState=inactive\nSubState=dead\nMainPID=0\nNRestarts=0\n", done.stderr
    assert [path.name for path in prefix.iterdir()] == ["service.sh"]


def test_each_kind_of_service_has_its_own_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/li/.config")
    runner = None
    user = Machine(runner, scope=USER)  # type: ignore[arg-type]
    assert user.manage("mini", "restart") == ("systemctl", "--user", "restart", "sampan-mini.service")
    assert user.manage("mini", "daemon-reload") == ("systemctl", "--user", "daemon-reload")
    assert user.unit_file("mini") == Path("/home/li/.config/systemd/user/sampan-mini.service")
    assert user.log_command("mini", "-f") == ("journalctl", "--user-unit", "sampan-mini.service", "-f")
    own = Machine(runner, scope=SCRIPT, prefix=tmp_path)  # type: ignore[arg-type]
    assert own.manage("mini", "stop") == ("sh", f"{tmp_path}/service.sh", "stop")
