"""A machine with a real systemd as PID 1: a Debian 11 tree (systemd 247), booted by systemd-nspawn.

The tree is made once by debootstrap from the mirror in this machine's own apt settings and kept in sampan's cache;
each container runs on an overlay of it, so nothing that a test does survives. The container gets cgroups of its
own below this process's, and may set limits in them: nspawn leaves the v1 controllers read-only otherwise.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sampan.edge.store import default_root

SUITES = ("bullseye", "bookworm")  # the first that the user's mirror has
PACKAGES = "systemd,systemd-sysv,dbus,openssl"
_BOOT_SECONDS = 60.0
_CGROUPS = Path("/sys/fs/cgroup")
#: words: files of cgroups to enter, `--`, then what to become
_JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; exec "$@"'


def missing() -> str | None:
    """Why no container can be booted here; None where one can."""
    if os.geteuid() != 0:
        return "needs root, to boot a container"
    lacking = [tool for tool in ("systemd-nspawn", "debootstrap", "nsenter") if shutil.which(tool) is None]
    return f"needs {', '.join(lacking)} (Debian: systemd-container, debootstrap)" if lacking else None


def tree(suites: Sequence[str] = SUITES) -> Path | None:
    """The tree of the first of these Debians, made where it is not there yet; None where no mirror has any."""
    folder = default_root() / "test-trees"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for suite in suites:
            final = folder / f"{suite}-openssl"  # named for what is in it beyond the first such trees
            if final.is_dir() or _debootstrap(suite, final):
                return final
    return None


def _debootstrap(suite: str, final: Path) -> bool:
    fresh = final.with_name(f"{final.name}.new")
    for mirror in mirrors():
        shutil.rmtree(fresh, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(fresh), mirror]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            shutil.rmtree(fresh / "var/cache/apt", ignore_errors=True)
            fresh.rename(final)
            return True
    shutil.rmtree(fresh, ignore_errors=True)
    return False


def mirrors() -> list[str]:
    """Debian archives in this machine's apt settings, without the security archive."""
    wanted = "$(REPO_URI) $(ORIGIN) $(LABEL)"
    command = ["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line.split() for line in done.stdout.splitlines()]
    return list(dict.fromkeys(row[0] for row in rows if row[1:] == ["Debian", "Debian"]))


@dataclass
class Container:
    """A booted machine; ``root`` is its file system as the host sees it."""

    root: Path
    binds: tuple[str, ...] = ()
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _groups: list[Path] = field(default_factory=list, repr=False)

    def boot(self) -> None:
        """Start PID 1 and wait until systemd has started everything."""
        self._groups = _own_cgroups(f"sampan-test-{os.getpid()}-{self.root.parent.name}")
        command = [
            "systemd-nspawn",
            "--register=no",
            "--keep-unit",
            "--quiet",
            "--boot",
            "--directory",
            str(self.root),
        ]
        command += ["--private-network", "--console=pipe", *self.binds]
        procs = [str(group / "cgroup.procs") for group in self._groups]
        with (self.root.parent / "console.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _JOIN, "sh", *procs, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_until_running()
        self._open_controllers()

    def _wait_until_running(self) -> None:
        deadline = time.monotonic() + _BOOT_SECONDS
        while time.monotonic() < deadline:
            if self._init() and self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"):
                return
            time.sleep(0.2)
        console = (self.root.parent / "console.log").read_text(errors="replace")
        raise RuntimeError(f"the container did not boot:\n{console[-2000:]}")

    def _init(self) -> int | None:
        """The host's number of the container's PID 1."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        numbers = children.read_text().split() if children.exists() else []
        return int(numbers[0]) if numbers else None

    def _open_controllers(self) -> None:
        """Let this systemd set limits in cgroups v1; in v2 nspawn has delegated them already."""
        for group in self._groups:
            name = group.relative_to(_CGROUPS).parts[0]
            if name not in ("systemd", "unified") and (_CGROUPS / name / "tasks").exists():
                self.run("mount", "-o", "remount,bind,rw", f"/sys/fs/cgroup/{name}")
        self.check("systemctl", "daemon-reexec")

    def run(self, *argv: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as root."""
        init = self._init()
        if init is None:
            return subprocess.CompletedProcess(argv, 255, "", "no container")
        command = ["nsenter", "--all", f"--target={init}", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
        command += [f"{key}={value}" for key, value in (env or {}).items()]
        return subprocess.run([*command, *argv], capture_output=True, text=True, check=False, timeout=300)

    def check(self, *argv: str, env: dict[str, str] | None = None) -> str:
        """Run a command inside that must go well, and give what it printed."""
        done = self.run(*argv, env=env)
        assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.check("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def files(self, *folders: str) -> set[str]:
        """Every path below these folders, as the container sees them."""
        found = self.check("find", *folders, "-xdev").splitlines()
        return set(found)

    def shut_down(self) -> None:
        """Power off in good order."""
        self._signal(signal.SIGRTMIN + 4)

    def cut_power(self) -> None:
        """End every process at once, as a power cut would."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        process, init = self._process, self._init() if self._process else None
        if process is None:
            return
        if init is not None:
            os.kill(init, number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None
        _remove_cgroups(self._groups)


def wait_for(what: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)


def _own_cgroups(name: str) -> list[Path]:
    """A cgroup for the container in every hierarchy, below the one that this process is in."""
    made = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        mount = _mount_of(number, controllers)
        if mount is None:
            continue
        group = mount / path.lstrip("/") / name
        group.mkdir(exist_ok=True)
        for knob in ("cpuset.cpus", "cpuset.mems"):  # empty in a new v1 group, which could then hold no process
            if (group / knob).exists() and not (group / knob).read_text().strip():
                (group / knob).write_text((group.parent / knob).read_text())
        made.append(group)
    return made


def _mount_of(number: str, controllers: str) -> Path | None:
    if number == "0":
        candidates = [_CGROUPS / "unified", _CGROUPS]
    else:
        candidates = [
            _CGROUPS / controllers.removeprefix("name="),
            *(_CGROUPS / one for one in controllers.split(",")),
        ]
    return next((place for place in candidates if (place / "cgroup.procs").exists()), None)


def _remove_cgroups(groups: Sequence[Path]) -> None:
    for group in groups:
        for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        group.rmdir()


@contextmanager
def container(base: Path, work: Path, binds: Sequence[str] = ()) -> Iterator[Container]:
    """A booted machine on an overlay of ``base``; ``work`` is an empty folder on a real disk."""
    for name in ("upper", "work", "root"):
        (work / name).mkdir(parents=True)
    layers = f"lowerdir={base},upperdir={work / 'upper'},workdir={work / 'work'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(work / "root")], check=True)
    machine = Container(work / "root", tuple(binds))
    try:
        machine.boot()
        yield machine
    finally:
        machine.cut_power()
        subprocess.run(["umount", str(work / "root")], check=True)
        shutil.rmtree(work)
