"""A miniature bundle of real files, and a systemd that only remembers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sampan.edge.progress import SilentProgress
from sampan.errors import MissingToolError
from sampan.install.job import Hands
from sampan.install.model import Health, InstallOptions
from sampan.spec import codec
from sampan.spec.plan import EngineSettings, Plan, Variant
from sampan.spec.ports import Completed

LAUNCHER = '#!/bin/sh\n[ "${1-}" = --version ] && echo "sampan 0.1.0" && exit 0\nprintf "<%s>" "$@"; pwd\n'


def make_plan(name: str = "mini", release: int = 1) -> Plan:
    """A plan for this machine that any CPU can run."""
    return Plan(
        name=name,
        release=release,
        target="this",
        arch=os.uname().machine,
        page_size=4096,
        engine="llama.cpp",
        variants=(Variant("any", os.uname().machine, 0, ("base",), "generic"),),
        task="embedding",
        model="mini-model",
        quantization="Q8_0",
        settings=EngineSettings(512, 512, 512, 1, True, 4, True),
        memory=(),
        memory_total_bytes=400 << 20,
        memory_available_bytes=None,
    )


def seal(bundle: Path) -> Path:
    """Write SHA256SUMS over all files."""
    files = sorted(path for path in bundle.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(bundle)}\n" for path in files)
    (bundle / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    return bundle


def make_bundle(bundle: Path, plan: Plan, launcher: str = LAUNCHER) -> Path:
    """A whole bundle in small; a name with a space in it is one of its files."""
    (bundle / "weights").mkdir(parents=True)
    (bundle / "plan.json").write_text(codec.to_json(plan), encoding="utf-8")
    (bundle / "weights" / "tiny model.gguf").write_bytes(b"GGUF" * 1000)
    (bundle / "sampan").write_text(launcher, encoding="utf-8")
    (bundle / "sampan").chmod(0o755)
    return seal(bundle)


def put_keys(path: Path, **changes: int) -> Path:
    """One key in a closed file below closed folders, as under a umask of 077."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": "sampan/keys/1", "keys": [{"id": "0" * 8, "revoked": 0} | changes]}))
    path.chmod(0o600)
    return path


@dataclass
class FakeSystemd:
    """See ports.Runner. Knows systemctl, the account tools and the release's own program; keeps the last state."""

    root: Path
    version: int = 247
    missing: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()  # first words after the program's name, such as "restart"
    state: dict[str, str] = field(
        default_factory=lambda: {"ActiveState": "inactive", "SubState": "dead", "MainPID": "0"}
    )
    started: str = "active"  # what a restart leads to
    log: list[tuple[str, ...]] = field(default_factory=list)
    next_pid: int = 100
    succession: str = ""  # works or fails: its services can hand over; else they know nothing of that

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,  # noqa: ARG002
        env: Mapping[str, str] | None = None,  # noqa: ARG002
        stdin: bytes | None = None,  # noqa: ARG002
        log: Path | None = None,  # noqa: ARG002
        on_line: Callable[[str], None] | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
    ) -> Completed:
        """Answer as the tool would."""
        words = tuple(argv)
        self.log.append(words)
        if words[0] in self.missing:
            raise MissingToolError("tool.missing", tool=words[0])
        if words[0].endswith("/sampan"):
            code = 126 if not os.access(words[0], os.X_OK) else int("refused" in self.failing)
            return Completed(words, code, "sampan 0.1.0\n" if code == 0 else "Permission denied\n")
        if words[0] == "getent":  # the accounts are all in /etc
            return Completed(words, 2, "")
        if words[1] in self.failing:
            return Completed(words, 1, "it went wrong\n")
        return Completed(words, 0, self._tool(words))

    def _tool(self, words: tuple[str, ...]) -> str:
        if words[:2] == ("systemctl", "--version"):
            return f"systemd {self.version} ({self.version}.1)\n+PAM\n"
        if words[:2] == ("systemctl", "show"):
            self._proceed()
            shown = self.state | {"MemoryMax": self._memory_max()}
            return "".join(f"{key}={value}\n" for key, value in shown.items())
        if words[0] == "journalctl":
            return "last words\n"
        if words[0] in ("useradd", "groupadd"):
            with (self.root / "etc" / ("passwd" if words[0] == "useradd" else "group")).open("a") as stream:
                stream.write(f"{words[-1]}:x:999:999::/nonexistent:/usr/sbin/nologin\n")
        if words[0] in ("userdel", "groupdel"):
            path = self.root / "etc" / ("passwd" if words[0] == "userdel" else "group")
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(line for line in lines if not line.startswith(f"{words[-1]}:")))
        if words[:2] in (("systemctl", "restart"), ("systemctl", "start")):
            self.next_pid += 1
            sub = {"active": "running", "activating": "auto-restart", "failed": "failed"}[self.started]
            self._exit()
            self.state = {"ActiveState": self.started, "SubState": sub, "MainPID": str(self._process())}
        if words[:2] == ("systemctl", "kill"):
            self._signal(words[-1])
        if words[:2] == ("systemctl", "set-property"):
            key, _, value = words[-1].partition("=")
            self._drop_ins.mkdir(parents=True, exist_ok=True)
            (self._drop_ins / f"50-{key}.conf").write_text(f"[Service]\n{key}={value}\n")
        if words[:2] == ("systemctl", "stop"):
            self._exit()
            self.state = {"ActiveState": "inactive", "SubState": "dead", "MainPID": "0"}
        return ""

    @property
    def _drop_ins(self) -> Path:
        return self.root / "run/systemd/system.control/sampan-mini.service.d"

    def _memory_max(self) -> str:
        """In bytes, of the last file that sets it."""
        files = (self.root / "etc/systemd/system/sampan-mini.service", *sorted(self._drop_ins.glob("*.conf")))
        lines = [line for file in files if file.is_file() for line in file.read_text().splitlines()]
        found = [line.partition("=")[2] for line in lines if line.startswith("MemoryMax=")]
        return str(int(found[-1].removesuffix("M")) << 20) if found else "infinity"

    def _process(self) -> int:
        """The number of the last process, which /proc shows as one that knows both signals."""
        if self.succession:
            folder = self.root / "proc" / str(self.next_pid)
            folder.mkdir(exist_ok=True)
            (folder / "status").write_text("Name:\tsampan\nSigCgt:\t0000000000004a02\n")
            (folder / "stat").write_text(f"{self.next_pid} (sampan) S {'0 ' * 18}{self.next_pid} 0\n")
        return self.next_pid

    def _exit(self) -> None:
        for name in (self.state.get("MainPID"), self.state.pop("Successor", "")):
            shutil.rmtree(self.root / "proc" / str(name or "none"), ignore_errors=True)

    def _signal(self, word: str) -> None:
        """What a running service does when it is asked to hand over, or not to."""
        if word == "--signal=USR2" and "Successor" not in self.state:
            self._tell("started")
            self.next_pid += 1
            self.state |= {"Successor": str(self._process()), "Looks": "6"}
        if word == "--signal=USR1":
            shutil.rmtree(self.root / "proc" / self.state.pop("Successor", "none"), ignore_errors=True)
            self._tell("called off")

    def _tell(self, word: str) -> None:
        count = int(self.state.get("Words", "0")) + 1
        self.state |= {"Words": str(count), "StatusText": f"hand-over {count}: {word}"}

    def _proceed(self) -> None:
        """A successor comes to an end of its start when it was looked at some times."""
        looks = int(self.state.get("Looks", "0")) - 1
        self.state["Looks"] = str(looks)
        if "Successor" not in self.state or looks > 0:
            return
        successor = self.state.pop("Successor")
        if self.succession == "works":
            self._exit()
            self.state["MainPID"] = successor
            self.taken_over()
        else:
            shutil.rmtree(self.root / "proc" / successor, ignore_errors=True)
            self._tell("failed: told to")

    def taken_over(self) -> None:
        """The successor is the main process from now on."""

    def called(self, *words: str) -> bool:
        """Whether a command began with these words."""
        return any(done[: len(words)] == words for done in self.log)


@dataclass
class Target:
    """A pretended target below ``root``; its prefix is a real folder."""

    root: Path
    systemd: FakeSystemd
    said: list[str] = field(default_factory=list)
    health: str = "ready"
    selftest_error: Exception | None = None

    @property
    def prefix(self) -> Path:
        """Where the tests install."""
        return self.root / "opt/sampan/mini"

    @property
    def unit(self) -> Path:
        """The unit file."""
        return self.root / "etc/systemd/system/sampan-mini.service"

    def hands(self) -> Hands:
        """What install is handed here."""
        return Hands(
            runner=self.systemd,
            health=lambda _host, _port, _tls: Health(self.health),
            selftest=self._selftest,
            echo=self.said.append,
            progress=SilentProgress(),
            sleep=lambda _seconds: None,
            root=self.root,
        )

    def _selftest(self, _release: Path, _host: str, _port: int, _certificate: str | None) -> str:
        if self.selftest_error is not None:
            raise self.selftest_error
        return "3 of 3 right"

    def options(self, bundle: Path, **changes: object) -> InstallOptions:
        """Options that succeed."""
        options = InstallOptions(bundle=bundle, features=frozenset({"base"}), prefix=self.prefix, health_seconds=5)
        return replace(options, **changes)  # type: ignore[arg-type]

    def files(self) -> dict[str, bytes | str]:
        """All that the target holds: path -> content, link target or a slash for a folder."""
        return {str(path.relative_to(self.root)): _content(path) for path in sorted(self.root.rglob("*"))}


def _content(path: Path) -> bytes | str:
    if path.is_symlink():
        return str(path.readlink())
    return "/" if path.is_dir() else path.read_bytes()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Release 1 of ``mini``."""
    return make_bundle(tmp_path / "mini-1", make_plan())


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A machine with systemd 247, run by root, whose temporary folder may hold a service."""
    root = tmp_path / "root"
    for name in ("etc/systemd/system", "run/systemd/system", "proc/net", "opt"):
        (root / name).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "proc/meminfo").write_text("MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n")
    (root / "proc/cgroups").write_text("#name hierarchy num enabled\nmemory 1 1 1\npids 2 1 1\n")
    monkeypatch.setattr("sampan.install.preflight._VOLATILE", ())
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for call in (
        "chown",
        "fchown",
        "fsync",
        "sync",
    ):  # not ours to change owners; a whole machine's sync takes seconds
        monkeypatch.setattr(f"os.{call}", lambda *_args: None)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o001)
    return Target(root, FakeSystemd(root))
