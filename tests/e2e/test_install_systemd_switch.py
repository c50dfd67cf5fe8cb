"""A release takes over from the running one under a real systemd, with requests running all the time.

The gateway is the real one, over the fake engine; API keys are set, so every request but the refused ones has one.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e import host_python, systemd_container
from tests.e2e.serving_bundle import serving_bundle
from tests.e2e.systemd_container import Container
from tests.fakes import certificates

pytestmark = pytest.mark.e2e

PREFIX, UNIT, PORT = "/opt/sampan/mini", "sampan-mini.service", "9100"
SAMPAN = f"{PREFIX}/current/sampan"
Carry = Callable[..., str]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """One booted machine for all tests."""
    why = systemd_container.missing()
    if why:
        pytest.skip(why)
    base = systemd_container.tree()
    if base is None:
        pytest.skip("no Debian mirror of this machine's apt settings can be reached")
    work = tmp_path_factory.mktemp("machine")
    with systemd_container.container(base, work / "layers", host_python.binds()) as booted:
        yield booted


@pytest.fixture
def clean(machine: Container) -> Iterator[Container]:
    """Nothing of ``mini`` is left behind."""
    yield machine
    machine.run("sh", "-c", f"{SAMPAN} uninstall --purge; rm -rf /srv/bundles /run/load")


@pytest.fixture
def carry(clean: Container, tmp_path: Path) -> Carry:
    """Put a bundle onto the machine; gives its folder there."""

    def put(release: int, memory: int = 300, mark: str = "") -> str:
        bundle = serving_bundle(tmp_path / f"mini-{release}", release, memory=memory, mark=mark)
        shutil.copytree(bundle, clean.root / f"srv/bundles/mini-{release}")
        return f"/srv/bundles/mini-{release}"

    return put


@contextmanager
def load(machine: Container, key: str) -> Iterator[dict[str, int]]:
    """Clients ask all the time while the block runs; then how they were answered."""
    found: dict[str, int] = {}
    words = host_python.command("tests.e2e.steady_load").split()

    def run() -> None:
        done = machine.run(*words, PORT, "4", "/run/load", key)
        found.update(json.loads(done.stdout) if done.returncode == 0 else {done.stderr[-500:]: 1})

    machine.run("rm", "-f", "/run/load")
    clients = threading.Thread(target=run)
    clients.start()
    try:
        yield found
    finally:
        machine.check("touch", "/run/load")
        clients.join()


def memory_limit(machine: Container) -> int:
    """As the kernel holds it, in MiB."""
    group = machine.show(UNIT, "ControlGroup")
    files = f"/sys/fs/cgroup/memory{group}/memory.limit_in_bytes /sys/fs/cgroup{group}/memory.max"
    return int(machine.run("sh", "-c", f"cat {files} 2>/dev/null").stdout or 0) >> 20


def processes(machine: Container) -> list[int]:
    """All of the service, engine included."""
    group = machine.show(UNIT, "ControlGroup")
    return [int(line) for line in machine.check("cat", f"/sys/fs/cgroup/systemd{group}/cgroup.procs").split()]


def status_of(machine: Container, key: str = "") -> str:
    """What a request is answered, with this key or none."""
    script = (
        "import sys,urllib.request,urllib.error as e\n"
        "h={'Content-Type':'application/json'}\n"
        "h.update({'Authorization':'Bearer '+sys.argv[2]} if sys.argv[2:] else {})\n"
        "u='http://127.0.0.1:'+sys.argv[1]+'/v1/embeddings'\n"
        'try: print(urllib.request.urlopen(urllib.request.Request(u,b\'{"input":"hello"}\',h)).status)\n'
        "except e.HTTPError as error: print(error.code)\n"
    )
    python = host_python.command().removesuffix(" -m sampan").split()
    return machine.check(*python, "-c", script, PORT, *([key] if key else [])).strip()


def test_upgrades_and_a_roll_back_lose_no_request_and_keys_survive(clean: Container, carry: Carry) -> None:
    first = carry(1)
    key = json.loads(clean.check(f"{first}/sampan", "key", "add", "client", "--json"))["key"]
    assert "✓ Self-test" in clean.check(f"{first}/install.sh", "--port", PORT)
    assert (status_of(clean), status_of(clean, key)) == ("401", "200")
    mains, old = [clean.show(UNIT, "MainPID")], processes(clean)
    assert memory_limit(clean) == 556
    with load(clean, key) as upgraded:
        said = clean.check(SAMPAN, "upgrade", carry(2, memory=600))
    assert upgraded.keys() == {"200"}, upgraded
    assert upgraded["200"] > 50
    assert "without a pause" in said
    assert "✓ Self-test" in said
    assert _health(clean)["release"] == "mini-2"
    assert set(processes(clean)).isdisjoint(old), "the old release and its engine are gone"
    assert memory_limit(clean) == 856
    assert clean.show(UNIT, "DropInPaths") == ""
    mains.append(clean.show(UNIT, "MainPID"))
    with load(clean, key) as rolled_back:
        said = clean.check(SAMPAN, "rollback")
    assert rolled_back.keys() == {"200"}, rolled_back
    assert "without a pause" in said
    assert _health(clean)["release"] == "mini-1"
    assert memory_limit(clean) == 556
    mains.append(clean.show(UNIT, "MainPID"))
    assert len(set(mains)) == 3
    assert clean.show(UNIT, "NRestarts") == "0"
    assert (status_of(clean), status_of(clean, key)) == ("401", "200")
    print(f"answered while upgrading {upgraded}, while rolling back {rolled_back}")
    _reads_keys_anew(clean, key)
    _comes_back_after_a_crash(clean)


def _health(machine: Container) -> dict[str, object]:
    script = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{PORT}/health').read().decode())"
    python = host_python.command().removesuffix(" -m sampan").split()
    return dict(json.loads(machine.check(*python, "-c", script)))


def _reads_keys_anew(machine: Container, key: str) -> None:
    """`systemctl reload` reaches the process that took over."""
    main = machine.show(UNIT, "MainPID")
    machine.check(SAMPAN, "key", "revoke", "client")
    another = json.loads(machine.check(SAMPAN, "key", "add", "another", "--json"))["key"]
    machine.check("systemctl", "reload", UNIT)
    systemd_container.wait_for(lambda: status_of(machine, key) == "401")
    assert status_of(machine, another) == "200"
    assert machine.show(UNIT, "MainPID") == main


def _comes_back_after_a_crash(machine: Container) -> None:
    """systemd minds a main process that it did not start itself."""
    main = machine.show(UNIT, "MainPID")
    machine.check("sh", "-c", f"kill -9 {main}")
    systemd_container.wait_for(lambda: machine.show(UNIT, "MainPID") not in ("0", main))
    systemd_container.wait_for(lambda: machine.run(SAMPAN, "status").returncode == 0)


def test_a_release_that_answers_wrongly_does_not_even_pause_the_running_one(clean: Container, carry: Carry) -> None:
    first = carry(1)
    key = json.loads(clean.check(f"{first}/sampan", "key", "add", "client", "--json"))["key"]
    clean.check(f"{first}/install.sh", "--port", PORT)
    main, before = clean.show(UNIT, "MainPID"), clean.files("/opt", "/etc")
    with load(clean, key) as found:
        done = clean.run(SAMPAN, "upgrade", carry(2, mark="wrong"))
    assert done.returncode == 11
    assert "did not take over" in done.stdout + done.stderr
    assert found.keys() == {"200"}, found
    assert clean.show(UNIT, "MainPID") == main
    assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/1"
    assert clean.files("/opt", "/etc") == before
    assert memory_limit(clean) == 556
    assert clean.show(UNIT, "DropInPaths") == ""


def test_a_kill_in_the_middle_of_a_take_over_is_put_right_by_the_next_command(clean: Container, carry: Carry) -> None:
    clean.check(f"{carry(1)}/install.sh", "--port", PORT)
    main = clean.show(UNIT, "MainPID")
    asked = f"until systemctl show -p StatusText {UNIT} | grep -q started; do :; done"
    killer = f"{SAMPAN} upgrade {carry(2)} & {asked}; kill -9 $!; wait; test -e {PREFIX}/pending.json"
    clean.check("sh", "-c", killer)
    assert memory_limit(clean) == 2 * 556
    clean.check(f"{PREFIX}/releases/1/sampan", "recover")
    assert clean.show(UNIT, "MainPID") == main, "it never stopped"
    assert clean.check("readlink", f"{PREFIX}/current").strip() == "releases/1"
    assert memory_limit(clean) == 556
    assert _health(clean)["release"] == "mini-1"


def test_another_port_needs_a_restart_and_says_so(clean: Container, carry: Carry) -> None:
    clean.check(f"{carry(1)}/install.sh", "--port", "9101")
    said = clean.check(f"{carry(2)}/install.sh", "--port", PORT)
    assert "by a restart: the unit changes in what only a start brings into force (ExecStart)" in said
    assert _health(clean)["release"] == "mini-2"


def test_a_service_over_tls_is_asked_over_tls_and_hands_over(clean: Container, carry: Carry) -> None:
    first, folder = carry(1), "/etc/sampan/mini"
    clean.check("mkdir", "-p", folder)
    clean.check(*certificates.words(f"{folder}/tls.key", f"{folder}/tls.crt", "elsewhere"))
    clean.check("chmod", "600", f"{folder}/tls.key")
    clean.check(f"{first}/sampan", "key", "add", "client", "--json")
    tls = ("--tls-cert", f"{folder}/tls.crt", "--tls-key", f"{folder}/tls.key")
    said = clean.check(f"{first}/install.sh", "--port", PORT, *tls)
    assert "✓ Self-test" in said
    assert f"https://127.0.0.1:{PORT}" in said
    assert clean.check("stat", "--format=%U %a", f"{folder}/tls.key").strip() == "sampan-mini 600"
    said = clean.check(SAMPAN, "upgrade", carry(2))
    assert "without a pause" in said
    assert json.loads(clean.check(SAMPAN, "status", "--json"))["scheme"] == "https"
    assert clean.run(SAMPAN, "selftest").returncode == 0
