"""A service without systemd and without root's rights used: installed by the bundle's own script, and its life."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.fakes.miniature import miniature, packed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("perl") is None, reason="needs perl, for the service in miniature"),
]
KILLS = int(os.environ.get("SAMPAN_REAL_KILLS", "6"))


@dataclass
class Home:
    """Where a user installs: a prefix on a lasting disk, and a free port."""

    prefix: Path
    port: int

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """The installed release's own sampan."""
        return run(self.prefix / "current/sampan", *words)

    def check(self, *words: str | Path) -> str:
        """That must go well."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def answers(self) -> bool:
        """Whether it serves."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def status(self) -> dict[str, object]:
        """What `status` says."""
        found: dict[str, object] = json.loads(self.run("status", "--json").stdout)
        return found


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """A command of a person without any session of systemd."""
    gone = ("SAMPAN_BUNDLE", "XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY")
    environ = {key: value for key, value in os.environ.items() if key not in gone} | {"SAMPAN_LANG": "en"}
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, env=environ, timeout=120)


@pytest.fixture
def home() -> Iterator[Home]:
    """Nothing is installed; at the end nothing runs."""
    folder = Path(tempfile.mkdtemp(prefix=".sampan-test-", dir=Path.home()))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    yield Home(folder / "mini", port)
    if (folder / "mini/service.sh").is_file():
        run("sh", folder / "mini/service.sh", "stop")
    shutil.rmtree(folder)


def keepers(home: Home) -> list[int]:
    """Processes that keep this service alive."""
    words = str(home.prefix / "service.sh").encode() + b"\0keep"
    found = (path for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [int(path.parent.name) for path in found if words in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def wait_for(what: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)


def test_the_whole_life_without_systemd(home: Home, tmp_path: Path) -> None:
    first, second = miniature(tmp_path / "mini-1"), packed(miniature(tmp_path / "mini-2", 2), tmp_path / "tar")
    words = ("--script", "--prefix", home.prefix, "--port", str(home.port))
    done = run(first / "install.sh", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = home.status()
    assert (found["mode"], found["state"], found["health"], found["release"]) == ("script", "active", "ready", 1)

    os.kill(int(str(found["pid"])), signal.SIGKILL)
    wait_for(lambda: not home.answers())
    wait_for(home.answers)
    assert home.status()["restarts"] == 1

    assert "✓ Self-test" in home.check("upgrade", second)
    assert (home.status()["release"], home.status()["port"]) == (2, home.port)
    assert [one["release"] for one in json.loads(home.run("releases", "--json").stdout)["releases"]] == [2, 1]
    home.check("rollback")
    assert (home.status()["release"], home.status()["health"]) == (1, "ready")

    home.check("stop")
    assert home.run("status").returncode == 11
    with ThreadPoolExecutor(4) as many:  # as commands that come quickly after one that was killed
        assert all(code == 0 for code in many.map(lambda _: home.run("start").returncode, range(4)))
    wait_for(home.answers)
    wait_for(lambda: len(keepers(home)) == 1)
    assert "releases" in home.check("uninstall")
    assert list(home.prefix.parent.iterdir()) == []
    assert keepers(home) == []


def test_a_real_command_is_killed_at_random_moments(home: Home, tmp_path: Path) -> None:
    """SIGKILL of a whole process group: what served before serves, now or after the next command."""
    first, second = miniature(tmp_path / "mini-1"), packed(miniature(tmp_path / "mini-2", 2), tmp_path / "tar")
    done = run(first / "install.sh", "--script", "--prefix", home.prefix, "--port", str(home.port))
    assert done.returncode == 0, done.stdout + done.stderr
    dice, cut_off, release = random.Random(7), 0, 1
    for _ in range(KILLS):
        words = ("upgrade", str(second)) if release == 1 else ("rollback",)
        process = subprocess.Popen(
            [str(home.prefix / "current/sampan"), *words],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(dice.uniform(0.5, 4.0))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        cut_off += (home.prefix / "pending.json").is_file()
        home.check("start")
        wait_for(home.answers)
        status = home.status()
        assert status["pending"] is None
        release = int(str(status["release"]))
        assert (home.prefix / "current").readlink() == Path(f"releases/{release}")
        assert len(keepers(home)) == 1
    assert cut_off, "at least one was cut off in the middle"


def test_a_boot_in_the_middle_of_an_upgrade_serves_the_release_before(home: Home, tmp_path: Path) -> None:
    """The script's own ``start`` is all that a boot does."""
    first, second = miniature(tmp_path / "mini-1"), miniature(tmp_path / "mini-2", 2, "broken")
    done = run(first / "install.sh", "--script", "--prefix", home.prefix, "--port", str(home.port))
    assert done.returncode == 0, done.stdout + done.stderr
    words = [str(home.prefix / "current/sampan"), "upgrade", str(packed(second, tmp_path / "tar"))]
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (home.prefix / "current").readlink() == Path("releases/2"))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    run("sh", home.prefix / "service.sh", "stop")
    assert (home.prefix / "pending.json").is_file()
    assert run("sh", home.prefix / "service.sh", "start").returncode == 0
    assert (home.prefix / "current").readlink() == Path("releases/1")
    wait_for(home.answers)
    assert home.status()["pending"] is None
    assert len(keepers(home)) == 1
    assert not (home.prefix / ".before").is_symlink()
    assert "Nothing of mini was cut off" in home.check("recover")


def test_a_broken_session_leaves_no_change_half_done(home: Home, tmp_path: Path) -> None:
    """Where only the reader is gone, the change goes on to its end; where the terminal is, it is taken back."""
    first, second = miniature(tmp_path / "mini-1"), packed(miniature(tmp_path / "mini-2", 2), tmp_path / "tar")
    done = run(first / "install.sh", "--script", "--prefix", home.prefix, "--port", str(home.port))
    assert done.returncode == 0, done.stdout + done.stderr
    sampan = str(home.prefix / "current/sampan")

    process = subprocess.Popen([sampan, "upgrade", second], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (home.prefix / "current").readlink() == Path("releases/2"))
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 130
    assert (home.status()["release"], home.status()["pending"]) == (1, None)
    wait_for(home.answers)

    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen([sampan, "upgrade", second], stdout=writer, stderr=writer)
    os.close(writer)
    assert process.wait(60) == 0
    assert (home.status()["release"], home.status()["pending"]) == (2, None)
