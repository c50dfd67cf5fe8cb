"""install, its limits, crashes, a reboot, a power cut, an upgrade, a roll-back of what failed, and uninstall:
on a booted Debian 11 with a real systemd.

The service is one of a miniature bundle; its life is lived once more with a real one for this machine.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e import host_python, systemd_container
from tests.e2e.ships import Shipped
from tests.e2e.systemd_container import Container, wait_for
from tests.fakes.miniature import miniature, packed

from sampan.install.model import unit_name, user_name
from sampan.install.source import plan_of
from sampan.install.unit import limits

pytestmark = pytest.mark.e2e

PREFIX = "/opt/sampan/mini"
PLACES = ("/opt", "/etc", "/run", "/srv", "/var/lib/systemd")


@pytest.fixture(scope="module")
def base() -> Path:
    """The Debian tree."""
    why = systemd_container.missing()
    if why:
        pytest.skip(why)
    tree = systemd_container.tree()
    if tree is None:
        pytest.skip("no Debian mirror of this machine's apt settings can be reached")
    return tree


@pytest.fixture(scope="module")
def machine(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """One booted machine for all tests; each leaves it as it was."""
    work = tmp_path_factory.mktemp("machine")
    with systemd_container.container(base, work / "layers", host_python.binds()) as booted:
        booted.check("getent", "passwd", "root")
        yield booted


@pytest.fixture
def clean(machine: Container) -> Iterator[Container]:
    """The machine; whatever a test left of ``mini`` is taken away, so that tests stay apart."""
    yield machine
    machine.run("systemctl", "disable", "--now", "sampan-mini.service")
    machine.run("rm", "-rf", "/opt/sampan", "/etc/systemd/system/sampan-mini.service", "/srv/bundles")
    machine.run("userdel", "sampan-mini")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "reset-failed")


@pytest.fixture
def carry(clean: Container, tmp_path: Path) -> Callable[..., str]:
    """Put a miniature bundle onto the machine; gives its folder there."""

    def put(release: int = 1, *marks: str) -> str:
        bundle = miniature(tmp_path / f"mini-{release}", release, *marks, python=host_python.command())
        shutil.copytree(bundle, clean.root / f"srv/bundles/mini-{release}")
        return f"/srv/bundles/mini-{release}"

    return put


def accounts(machine: Container) -> tuple[str, str]:
    """The names of users and groups."""
    return machine.check("getent", "passwd"), machine.check("getent", "group")


def answers(machine: Container, name: str = "mini") -> Callable[[], bool]:
    """Whether `sampan status` of the installed service says that it answers."""
    return lambda: machine.run(f"/opt/sampan/{name}/current/sampan", "status").returncode == 0


def test_the_whole_life_of_a_service(clean: Container, carry: Callable[..., str]) -> None:
    bundle, before, people = carry(), clean.files(*PLACES), accounts(clean)
    output = clean.check(f"{bundle}/install.sh", "--port", "9100")
    assert "✓ Self-test" in output
    _runs_as_planned(clean, "mini", 9100)
    _comes_back_after_a_crash(clean, "mini")
    _stops_and_starts(clean, "mini")
    _is_back_after(clean, "mini", clean.shut_down)
    _is_back_after(clean, "mini", clean.cut_power)
    _is_gone_after_uninstall(clean, "mini")
    assert accounts(clean) == people
    noise = {path for path in clean.files(*PLACES) ^ before if "sampan" in path}
    assert noise == set()


def _runs_as_planned(machine: Container, name: str, port: int) -> None:
    """Enabled, under its own user, with the plan's limits in force in the kernel, on loopback only."""
    unit, user = unit_name(name), user_name(name)
    plan = plan_of(machine.root / f"opt/sampan/{name}/current")
    assert machine.check("systemctl", "is-enabled", unit).strip() == "enabled"
    main = machine.show(unit, "MainPID")
    status = machine.check("cat", f"/proc/{main}/status")
    assert machine.check("stat", "--format=%U:%G", f"/proc/{main}").strip() == f"{user}:{user}"
    assert "NoNewPrivs:\t1" in status
    assert "CapBnd:\t0000000000000000" in status
    wanted = limits(plan)
    assert _cgroup(machine, unit, "memory", ("memory.limit_in_bytes", "memory.max")) == str(wanted.memory_bytes)
    assert _cgroup(machine, unit, "pids", ("pids.max",)) == str(wanted.tasks)
    listening = machine.check("cat", "/proc/net/tcp", "/proc/net/tcp6")
    assert f"0100007F:{port:04X} 00000000:0000 0A" in listening
    assert f"00000000:{port:04X}" not in listening
    shown = json.loads(machine.check(f"/opt/sampan/{name}/current/sampan", "status", "--json"))
    assert (shown["mode"], shown["state"], shown["enabled"], shown["health"]) == ("systemd", "active", True, "ready")
    assert (shown["pid"], shown["port"]) == (int(main), port)
    assert shown["memory_bytes"] > 0
    analysis = machine.run("systemd-analyze", "verify", f"/etc/systemd/system/{unit}")
    assert (analysis.returncode, analysis.stderr.strip()) == (0, "")


def _cgroup(machine: Container, unit: str, controller: str, knobs: tuple[str, ...]) -> str:
    """A limit as the kernel holds it, in cgroups v1 or v2."""
    group = machine.show(unit, "ControlGroup")
    for top in (f"/sys/fs/cgroup/{controller}", "/sys/fs/cgroup"):
        for knob in knobs:
            done = machine.run("cat", f"{top}{group}/{knob}")
            if done.returncode == 0:
                return done.stdout.strip()
    pytest.skip(f"no {controller} controller in the container")


def _comes_back_after_a_crash(machine: Container, name: str) -> None:
    unit = unit_name(name)
    first = machine.show(unit, "MainPID")
    machine.check("sh", "-c", f"kill -9 {first}")
    wait_for(lambda: machine.show(unit, "MainPID") not in ("0", first))
    wait_for(answers(machine, name))
    assert machine.show(unit, "NRestarts") == "1"


def _stops_and_starts(machine: Container, name: str) -> None:
    sampan, unit = f"/opt/sampan/{name}/current/sampan", unit_name(name)
    group = machine.show(unit, "ControlGroup")
    machine.check(sampan, "stop")
    assert machine.show(unit, "ActiveState") == "inactive"
    assert machine.run("sh", "-c", f"cat /sys/fs/cgroup/*{group}/cgroup.procs").stdout == ""
    assert machine.run(sampan, "status").returncode == 11
    machine.check(sampan, "start")
    wait_for(answers(machine, name))


def _is_back_after(machine: Container, name: str, end: Callable[[], None]) -> None:
    end()
    machine.boot()
    wait_for(answers(machine, name), 60)


def _is_gone_after_uninstall(machine: Container, name: str) -> None:
    done = machine.run(f"/opt/sampan/{name}/current/sampan", "uninstall")
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    for thing in (f"/etc/systemd/system/{unit_name(name)}", f"/opt/sampan/{name}", user_name(name)):
        assert thing in said
    assert machine.show(unit_name(name), "LoadState") == "not-found"


def test_again_is_harmless_and_newer_takes_over(clean: Container, carry: Callable[..., str]) -> None:
    first = carry(1)
    clean.check(f"{first}/install.sh")
    main = clean.show("sampan-mini.service", "MainPID")
    assert "✓" in clean.check(f"{first}/install.sh")
    assert clean.show("sampan-mini.service", "MainPID") == main
    clean.check(f"{carry(2)}/install.sh")
    assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/2"
    assert clean.show("sampan-mini.service", "MainPID") != main
    assert clean.run(f"{first}/install.sh").returncode == 4


def test_upgrade_by_tar_roll_back_and_a_kill_between(
    clean: Container, carry: Callable[..., str], tmp_path: Path
) -> None:
    sampan, unit = f"{PREFIX}/current/sampan", "sampan-mini.service"
    clean.check(f"{carry(1)}/install.sh", "--port", "9100", "--memory", "900M", "--cpus", "1.5")
    for release, marks in ((2, ()), (3, ("wrong",))):
        tar = packed(
            miniature(tmp_path / f"t/mini-{release}", release, *marks, python=host_python.command()), tmp_path
        )
        shutil.copy(tar, clean.root / f"srv/bundles/mini-{release}.tar")
    before = clean.files("/opt", "/etc")
    assert "✓ Self-test" in clean.check(sampan, "upgrade", "/srv/bundles/mini-2.tar")
    assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/2"
    assert _cgroup(clean, unit, "memory", ("memory.limit_in_bytes", "memory.max")) == str(900 << 20)
    assert clean.show(unit, "CPUQuotaPerSecUSec") in ("1.5s", "1.500000s")
    done = clean.run(sampan, "upgrade", "/srv/bundles/mini-3.tar")
    assert (done.returncode, clean.check("readlink", f"{PREFIX}/current").strip()) == (11, "releases/2")
    assert "told to fail" not in clean.check(sampan, "logs", "-n", "5")
    clean.check(sampan, "rollback")
    assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/1"
    wait_for(answers(clean))
    assert clean.files(PREFIX) >= {path for path in before if path.startswith(PREFIX)}
    killer = f"{sampan} upgrade /srv/bundles/mini-2.tar & sleep 1; while [ ! -e {PREFIX}/pending.json ]; do :; done"
    clean.check("sh", "-c", f"{killer}; kill -9 $!; wait; test -e {PREFIX}/pending.json")
    clean.cut_power()
    clean.boot()
    wait_for(answers(clean), 60)
    clean.check(f"{PREFIX}/releases/1/sampan", "restart")
    assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/1"
    assert not (clean.root / PREFIX[1:] / "pending.json").exists()
    wait_for(answers(clean))
    _is_gone_after_uninstall(clean, "mini")


@pytest.mark.parametrize("marks", [(), ("broken",)])
def test_an_upgrade_that_was_killed_is_taken_back_by_the_next_start_of_the_service(
    clean: Container, carry: Callable[..., str], tmp_path: Path, marks: tuple[str, ...]
) -> None:
    """After a crash as after a power cut, with nothing typed; while the upgrade lives, a start leaves it alone."""
    sampan, unit, link = f"{PREFIX}/current/sampan", "sampan-mini.service", f"$(readlink {PREFIX}/current)"
    clean.check(f"{carry(1)}/install.sh")
    folder = miniature(tmp_path / "t/mini-2", 2, *marks, python=host_python.command())
    shutil.copy(packed(folder, tmp_path), clean.root / "srv/bundles/mini-2.tar")
    before = clean.files("/etc")
    killer = f"{sampan} upgrade /srv/bundles/mini-2.tar & until [ {link} = releases/2 ]; do :; done; kill -9 $!; wait"

    def crash() -> None:
        clean.run("systemctl", "kill", "--signal=KILL", unit)

    def cut() -> None:
        clean.cut_power()
        clean.boot()

    for end in (crash, cut):
        clean.run("sh", "-c", killer)
        assert (clean.root / PREFIX[1:] / "pending.json").exists()
        end()
        wait_for(lambda: not (clean.root / PREFIX[1:] / "pending.json").exists(), 60)
        wait_for(answers(clean), 60)
        assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/1"
        assert clean.files("/etc") == before
    if not marks:
        clean.check(sampan, "upgrade", "/srv/bundles/mini-2.tar")
        assert clean.files("/etc") == before
    assert "sampan" not in clean.check("systemctl", "--failed", "--no-legend")


def test_a_user_installs_without_root(clean: Container, carry: Callable[..., str]) -> None:
    """The user's own systemd keeps it alive."""
    bundle, environ = carry(), {"XDG_RUNTIME_DIR": "/run/user/1700", "HOME": "/home/li", "SAMPAN_LANG": "en"}
    clean.check("useradd", "--create-home", "--uid", "1700", "li")
    drop_in = clean.root / "etc/systemd/system/user@1700.service.d"
    drop_in.mkdir()  # what libpam-systemd, which this tree has not, would tell the user's systemd
    (drop_in / "runtime.conf").write_text("[Service]\nPAMName=\nEnvironment=XDG_RUNTIME_DIR=/run/user/%i\n")
    clean.check("systemctl", "daemon-reload")

    def li(*words: str) -> str:
        return clean.check("runuser", "-u", "li", "--", *words, env=environ)

    try:
        started = clean.run("systemctl", "start", "user@1700.service")
        assert started.returncode == 0, clean.check("journalctl", "--no-pager", "-n", "40", "-u", "user@1700.service")
        before = clean.files("/etc", "/opt")
        assert "✓ Self-test" in li(f"{bundle}/install.sh", "--user", "--port", "9500")
        sampan = "/home/li/.local/share/sampan/mini/current/sampan"
        status = json.loads(li(sampan, "status", "--json"))
        assert (status["mode"], status["health"], status["port"]) == ("user", "ready", 9500)
        assert clean.check("stat", "--format=%U", f"/proc/{status['pid']}").strip() == "li"
        assert clean.files("/etc", "/opt") == before
        li(sampan, "restart")
        li(sampan, "uninstall")
        left = clean.check("find", "/home/li", "-name", "*sampan*")
        assert left == ""
    finally:
        clean.run("systemctl", "stop", "user@1700.service")
        clean.run("userdel", "--remove", "--force", "li")
        clean.run("rm", "-r", "/etc/systemd/system/user@1700.service.d")


@pytest.mark.parametrize(("mark", "words"), [("broken", "told to fail"), ("wrong", "hello")])
def test_a_release_that_does_not_serve_rightly_gives_way_to_the_one_before(
    clean: Container, carry: Callable[..., str], mark: str, words: str
) -> None:
    clean.check(f"{carry(1)}/install.sh")
    before = clean.files("/opt", "/etc")
    done = clean.run(f"{carry(2, mark)}/install.sh")
    assert done.returncode == 11
    assert words in done.stdout + done.stderr
    assert clean.files("/opt", "/etc") == before
    assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/1"
    wait_for(answers(clean))


def test_a_first_release_that_dies_leaves_nothing(clean: Container, carry: Callable[..., str]) -> None:
    bundle, before, people = carry(1, "broken"), clean.files(*PLACES), accounts(clean)
    assert clean.run(f"{bundle}/install.sh").returncode == 11
    assert {path for path in clean.files(*PLACES) ^ before if "sampan" in path} == set()
    assert accounts(clean) == people
    assert clean.show("sampan-mini.service", "LoadState") == "not-found"


def test_a_strict_umask_and_a_chinese_locale_change_nothing(clean: Container, carry: Callable[..., str]) -> None:
    output = clean.check("sh", "-c", f"umask 077; {carry()}/install.sh", env={"LANG": "zh_CN.UTF-8"})
    assert "自检" in output
    modes = clean.check("find", "/opt/sampan", "!", "-type", "l", "-printf", "%m %U:%G\n").split("\n")
    assert set(modes) - {""} == {"755 0:0", "644 0:0"}


def test_a_prefix_that_the_services_user_cannot_enter_is_refused(clean: Container, carry: Callable[..., str]) -> None:
    done = clean.run(f"{carry()}/install.sh", "--prefix", "/root/mini")
    assert done.returncode == 4
    assert "/root" in done.stdout + done.stderr
    assert not (clean.root / "root/mini").exists()


@pytest.fixture
def mounted(clean: Container) -> Iterator[Callable[[str], str]]:
    """Mount a small file system with these options on the machine; gives its folder."""
    clean.check("mkdir", "-p", "/mnt/small")

    def mount(options: str) -> str:
        clean.check("mount", "-t", "tmpfs", "-o", f"mode=755,{options}", "tmpfs", "/mnt/small")
        return "/mnt/small"

    yield mount
    clean.run("umount", "-l", "/mnt/small")


def test_a_noexec_disk_is_refused_as_prefix_and_as_source(
    clean: Container, carry: Callable[..., str], mounted: Callable[[str], str]
) -> None:
    bundle, disk = carry(), mounted("noexec")
    done = clean.run(f"{bundle}/install.sh", "--prefix", f"{disk}/mini")
    assert done.returncode == 4
    assert f"{disk} is mounted noexec" in done.stdout + done.stderr
    assert clean.files(disk) == {disk}
    clean.check("cp", "-a", bundle, disk)
    done = clean.run("sh", f"{disk}/mini-1/install.sh")
    assert done.returncode == 4
    assert "noexec" in done.stderr


def test_a_full_disk_is_refused_with_what_is_needed(
    clean: Container, carry: Callable[..., str], mounted: Callable[[str], str]
) -> None:
    disk = mounted("size=8k")
    done = clean.run(f"{carry()}/install.sh", "--prefix", f"{disk}/mini")
    assert done.returncode == 8
    assert f"{disk} has 0 MiB free, 1 MiB are needed" in done.stdout + done.stderr
    assert clean.files(disk) == {disk}


def test_a_read_only_medium_is_good_enough_to_install_from(
    clean: Container, carry: Callable[..., str], mounted: Callable[[str], str]
) -> None:
    bundle, disk = carry(), mounted("size=1M")
    clean.check("cp", "-a", bundle, disk)
    clean.check("mount", "-o", "remount,ro", disk)
    clean.check(f"{disk}/mini-1/install.sh", "--port", "9400")
    wait_for(answers(clean))


def test_a_taken_port_is_seen_before_anything_is_done(clean: Container, carry: Callable[..., str]) -> None:
    clean.check("systemd-run", "--unit=blocker", "perl", "-MIO::Socket::INET", "-e", _BLOCKER)
    try:
        wait_for(lambda: "0100007F:2454 00000000:0000 0A" in clean.check("cat", "/proc/net/tcp"))
        done = clean.run(f"{carry()}/install.sh", "--port=9300")
        assert done.returncode == 4
        assert "9300" in done.stdout + done.stderr
        assert not (clean.root / "opt/sampan").exists()
    finally:
        clean.check("systemctl", "stop", "blocker")


# without variables: systemd-run would fill them in
_BLOCKER = "IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 9300, Listen => 1) and sleep 100"


def test_the_life_of_a_real_bundle(clean: Container, minilm_here: Shipped) -> None:
    real = minilm_here.folder
    plan = plan_of(real)
    shutil.copytree(real, clean.root / "srv/bundles/real", symlinks=True)
    people = accounts(clean)
    started = time.monotonic()
    output = clean.check("/srv/bundles/real/install.sh", "--port", "9200")
    print(f"{output}\ninstalled in {time.monotonic() - started:.1f} s")
    _runs_as_planned(clean, plan.name, 9200)
    _comes_back_after_a_crash(clean, plan.name)
    _stops_and_starts(clean, plan.name)
    _is_back_after(clean, plan.name, clean.cut_power)
    _is_gone_after_uninstall(clean, plan.name)
    assert accounts(clean) == people
    assert not (clean.root / "opt/sampan").exists()
