"""Preflight names everything that stands against an installation at once, and nothing that does not."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.install.conftest import Target, make_plan

from sampan import i18n
from sampan.errors import IncompatibleError, SampanError
from sampan.install import place
from sampan.install.facts import HostFacts, gather
from sampan.install.machine import Machine, listening_ports, memory, number, parse_properties
from sampan.install.model import Installed, InstallOptions
from sampan.install.preflight import check, notices, problems
from sampan.install.source import from_folder
from sampan.install.steps import install

PREFIX = Path("/opt/sampan/mini")
PLAN = make_plan()
OPTIONS = InstallOptions(bundle=Path("/b"), features=frozenset({"base"}))
FINE = HostFacts(
    root_user=True,
    arch=PLAN.arch,
    systemd=247,
    controllers=frozenset({"memory", "pids", "cpu"}),
    memory_total=8 << 30,
    memory_available=7 << 30,
    disk_free=1 << 30,
    disk_folder="/opt",
    no_exec=None,
    writable=True,
    closed=None,
    needed=100 << 20,
    clock=1.8e9,
    port_owner="nobody",
    prefix_state="free",
    record=None,
    release_state="absent",
    unit_ours=True,
)
RECORD = Installed("mini", 1, "installed", str(PREFIX), True, "127.0.0.1", 8080)


def codes(facts: HostFacts, options: InstallOptions = OPTIONS, prefix: Path = PREFIX, port: int = 8080) -> list[str]:
    """What preflight finds; each must have a text."""
    found = problems(PLAN, options, prefix, port, facts)
    assert all(problem.text() != f"install.problem.{problem.code}" for problem in found)
    return [problem.code for problem in found]


def test_nothing_stands_against_a_good_machine() -> None:
    assert codes(FINE) == []
    assert notices(PLAN, OPTIONS, FINE) == ()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"arch": "riscv64"}, "arch"),
        ({"memory_total": 300 << 20}, "memory"),
        ({"disk_free": 104 << 20}, "space"),
        ({"no_exec": "/opt"}, "noexec"),
        ({"closed": "/opt"}, "prefix-closed"),
        ({"root_user": False}, "root"),
        ({"writable": False}, "not-writable"),
        ({"systemd": None}, "no-systemd"),
        ({"systemd": 218}, "old-systemd"),
        ({"port_owner": "other"}, "port"),
        ({"unit_ours": False}, "unit-other"),
        ({"memory_limit": 300 << 20}, "memory-limit"),
        ({"port_holder": "sampan-other.service"}, "port-promised"),
        ({"prefix_state": "ours", "record": replace(RECORD, scope="user")}, "other-scope"),
        ({"prefix_state": "foreign"}, "prefix-foreign"),
        ({"prefix_state": "ours", "record": replace(RECORD, name="other")}, "prefix-other"),
        ({"prefix_state": "ours", "record": replace(RECORD, release=2)}, "downgrade"),
        ({"prefix_state": "ours", "record": RECORD, "release_state": "different"}, "release-differs"),
    ],
)
def test_each_obstacle_is_named(change: dict[str, object], code: str) -> None:
    assert codes(replace(FINE, **change)) == [code]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prefix", "code"),
    [
        ("/", "prefix-foreign"),
        ("/usr", "prefix-foreign"),
        ("/tmp/x", "prefix-volatile"),
        ("/run/x", "prefix-volatile"),
        ("/opt/my service", "prefix-characters"),
        ("/opt/a;b", "prefix-characters"),
    ],
)
def test_places_that_cannot_hold_a_service_are_refused(prefix: str, code: str) -> None:
    assert codes(FINE, prefix=Path(prefix)) == [code]


@pytest.mark.parametrize(("port", "code"), [(0, "port-number"), (65536, "port-number"), (443, "port-low")])
def test_ports_that_the_service_cannot_have(port: int, code: str) -> None:
    assert codes(FINE, port=port) == [code]


def test_own_port_own_release_and_an_interrupted_newer_one_are_no_obstacles() -> None:
    facts = replace(FINE, port_owner="ours", prefix_state="ours", record=RECORD, release_state="same", needed=0)
    assert codes(facts) == []
    assert codes(replace(facts, record=replace(RECORD, release=2, state="installing"))) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"clock": 0.0}, "clock"),
        ({"page_size": 65536}, "page-size"),
        ({"memory_available": 100 << 20}, "memory-now"),
        ({"controllers": frozenset({"memory"})}, "no-limits"),
        ({"copies": ("/home/li/.local/share/sampan/mini",)}, "other-copy"),
    ],
)
def test_what_should_be_known_stops_nothing(change: dict[str, object], code: str) -> None:
    facts = replace(FINE, **change)  # type: ignore[arg-type]
    assert codes(facts) == []
    (notice,) = notices(PLAN, OPTIONS, facts)
    assert notice.code == code
    assert notice.text() != f"install.problem.{code}"


def test_security_modules_are_named() -> None:
    (notice,) = notices(PLAN, replace(OPTIONS, guards=("KYSEC (present)",)), FINE)
    assert "KYSEC (present)" in notice.text()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"root_user": False}, 5),
        ({"disk_free": 0}, 8),
        ({"root_user": False, "disk_free": 0}, 8),
        ({"disk_free": 0, "systemd": 218}, 4),
        ({"systemd": None}, 4),
    ],
)
def test_exit_codes_say_what_kind_of_thing_lacks(change: dict[str, object], code: int) -> None:
    with pytest.raises(SampanError) as caught:
        check(PLAN, OPTIONS, PREFIX, 8080, replace(FINE, **change))  # type: ignore[arg-type]
    assert caught.value.exit_code == code


def test_a_prefix_inside_of_the_bundle_is_refused(tmp_path: Path) -> None:
    options = replace(OPTIONS, bundle=tmp_path / "mini-1", service=False)
    assert codes(FINE, options, tmp_path / "mini-1/here") == ["prefix-in-bundle"]
    assert codes(FINE, options, tmp_path / "mini-1x") == []


def test_without_root_systemd_is_asked_for_only_by_those_who_need_it() -> None:
    poor = replace(FINE, root_user=False, systemd=None, closed="/home/li")
    assert codes(poor, replace(OPTIONS, scope="script")) == []
    assert codes(poor, replace(OPTIONS, scope="user")) == ["no-user-systemd"]


def test_the_smallest_limit_above_the_services_counts(target: Target) -> None:
    machine = Machine(target.systemd, target.root)
    assert place.memory_limit(machine) is None
    for name, text in (("memory", str(2**63 - 4096)), ("memory/system.slice", str(3 << 30)), ("", "max")):
        folder = target.root / "sys/fs/cgroup" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ("memory.limit_in_bytes" if name else "memory.max")).write_text(f"{text}\n")
    assert place.memory_limit(machine) == 3 << 30


def test_a_mount_below_the_prefix_from_which_nothing_may_run_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mini/releases").mkdir(parents=True)
    assert place.no_exec(tmp_path / "mini", tmp_path) is None
    real = os.statvfs

    def mounted(path: Path) -> object:
        flags = os.ST_NOEXEC if Path(path).name == "releases" else 0
        return SimpleNamespace(f_flag=real(path).f_flag | flags)

    monkeypatch.setattr("os.statvfs", mounted)
    assert place.no_exec(tmp_path / "mini", tmp_path) == str(tmp_path / "mini/releases")
    assert place.no_exec(tmp_path / "other", tmp_path) is None


def test_a_service_that_is_set_to_the_port_is_found_though_it_does_not_run(target: Target) -> None:
    machine, folder = Machine(target.systemd, target.root), target.root / "etc/systemd/system"
    (folder / "sampan-other.service").write_text("[Service]\nExecStart=/x/sampan serve --host ::1 --port 8080\n")
    assert place.port_of_others(machine, "mini", 8080) == "sampan-other.service"
    assert place.port_of_others(machine, "other", 8080) is None
    assert place.port_of_others(machine, "mini", 808) is None


def test_without_a_service_neither_root_nor_systemd_nor_port_matter() -> None:
    poor = replace(FINE, root_user=False, systemd=None, port_owner="other", closed="/home/me", unit_ours=False)
    options = replace(OPTIONS, service=False)
    assert codes(poor, options, Path("/home/me/my models")) == []
    assert codes(replace(poor, prefix_state="ours", record=RECORD), options) == ["has-service"]


def test_all_problems_come_in_one_error(target: Target, bundle: Path) -> None:
    target.prefix.mkdir(parents=True)
    (target.prefix / "thesis.doc").write_text("mine")
    target.systemd.version = 208
    before = target.files()
    with pytest.raises(IncompatibleError) as caught:
        install(target.options(bundle, features=frozenset(), port=80), target.hands())
    assert caught.value.values["codes"] == "cpu,prefix-foreign,old-systemd,port-low"
    assert caught.value.exit_code == 4
    assert "any: base" in caught.value.message
    assert target.files() == before


def test_missing_controllers_and_scarce_memory_are_only_said() -> None:
    facts = replace(FINE, controllers=frozenset({"cpu", "pids"}), memory_available=100 << 20)
    assert codes(facts) == []
    assert [notice.code for notice in notices(PLAN, OPTIONS, facts)] == ["memory-now", "no-limits"]
    assert "memory" in notices(PLAN, OPTIONS, facts)[1].text()


def test_a_port_in_use_is_seen_in_the_kernels_own_table(target: Target, bundle: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (target.root / "proc/net/tcp").write_text(Path("/proc/net/tcp").read_text())
        machine = Machine(target.systemd, target.root)
        assert gather(machine, from_folder(bundle), target.prefix, port).port_owner == "other"


def test_the_running_service_owns_its_port(target: Target, bundle: Path) -> None:
    install(target.options(bundle, port=8080), target.hands())
    row = "sl local rem st\n 0: 0100007F:1F90 00000000:0000 0A 0 0 0\n"
    (target.root / "proc/net/tcp").write_text(row)
    assert install(target.options(bundle, port=8080), target.hands()).port == 8080


def test_free_space_and_prefix_are_looked_up_where_the_prefix_will_be(target: Target, bundle: Path) -> None:
    facts = gather(Machine(target.systemd, target.root), from_folder(bundle), target.prefix, 8080)
    assert facts.disk_folder == str(target.root / "opt")
    assert facts.needed == sum(
        path.stat().st_size for path in bundle.rglob("*") if path.name not in ("SHA256SUMS",) and path.is_file()
    )
    assert (facts.prefix_state, facts.release_state, facts.systemd) == ("free", "absent", 247)
    assert facts.controllers == {"memory", "pids"}


def test_a_unit_of_another_prefix_is_not_ours(target: Target, bundle: Path) -> None:
    install(target.options(bundle), target.hands())
    machine = Machine(target.systemd, target.root)
    assert gather(machine, from_folder(bundle), target.prefix, 8080).unit_ours
    assert not gather(machine, from_folder(bundle), target.root / "opt/elsewhere", 8080).unit_ours


def test_systemd_that_is_installed_but_not_running_does_not_count(target: Target) -> None:
    (target.root / "run/systemd/system").rmdir()
    assert Machine(target.systemd, target.root).systemd_version() is None


def test_parsers_read_what_the_kernel_and_systemd_print() -> None:
    v6 = "  sl  local_address rem st\n 0: 00000000000000000000000001000000:1F91 0:0000 0A 00000000:0\n"
    v4 = "  sl  local_address rem st\n 0: 0100007F:0050 0:0 0A x\n 1: 0100007F:0051 0:0 01 x\n"
    assert listening_ports((v4, v6, "")) == {0x50, 0x1F91}
    assert memory("MemTotal:       16 kB\nHugePages_Total:       0\nodd line\n") == {
        "MemTotal": 16384,
        "HugePages_Total": 0,
    }
    shown = parse_properties("MainPID=12\nMemoryCurrent=18446744073709551615\nNRestarts=[not set]\nEnv=A=b\nx\n")
    assert (number(shown, "MainPID"), number(shown, "MemoryCurrent"), number(shown, "NRestarts")) == (12, None, None)
    assert shown["Env"] == "A=b"


@pytest.fixture
def chinese() -> Callable[[], None]:
    """Speak Chinese for one test."""
    return lambda: i18n.use("zh")


def test_problems_speak_chinese(chinese: Callable[[], None]) -> None:
    chinese()
    try:
        found = problems(PLAN, OPTIONS, PREFIX, 8080, replace(FINE, port_owner="other"))
        assert "端口 8080 已被占用" in found[0].text()
    finally:
        i18n.use("en")
