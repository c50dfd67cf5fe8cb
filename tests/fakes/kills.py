"""End a process for real at its n-th change of anything, and a disk that keeps only what was synced."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.install.conftest import FakeSystemd

from sampan.spec.ports import Completed

#: what changes a disk, by the interpreter's own audit events; https://docs.python.org/3/library/audit_events.html
_CHANGES = frozenset(
    ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "os.link", "os.truncate")
)
_DEAD = {"ActiveState": "inactive", "SubState": "dead", "MainPID": "0"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Countdown:
    """Ends this process by SIGKILL before its n-th change; counts them otherwise."""

    fatal: int
    seen: int = 0

    def tick(self) -> None:
        """One change is about to be made."""
        self.seen += 1
        if self.seen == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(self, event: str, args: tuple[object, ...]) -> None:
        """See sys.addaudithook."""
        writing = event == "open" and isinstance(args[2], int) and bool(args[2] & _WRITING)
        if event in _CHANGES or writing:
            self.tick()


def killed_at(fatal: int, action: Callable[[Countdown], None]) -> tuple[bool, int]:
    """Run ``action`` in a child that dies at change ``fatal`` (0: never); whether it was killed, and its changes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _become(fatal, action, writer)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    said = os.read(reader, 2000).decode()
    os.close(reader)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True, fatal
    assert os.WEXITSTATUS(status) == 0, said
    return False, int(said)


def _become(fatal: int, action: Callable[[Countdown], None], writer: int) -> None:
    countdown = Countdown(fatal)
    try:
        sys.addaudithook(countdown.hook)
        action(countdown)
        os.write(writer, str(countdown.seen).encode())
        os._exit(0)
    except BaseException as error:  # a forked child must not go back into pytest
        os.write(writer, repr(error).encode()[:2000])
        os._exit(1)


@dataclass
class LastingSystemd(FakeSystemd):
    """A pretended systemd whose state outlives the process that asks it, and that knows what it runs."""

    countdown: Countdown | None = None
    prefix: Path = field(default_factory=Path)

    @property
    def _file(self) -> Path:
        return self.root / "run/state.json"

    def run(self, argv: Sequence[str], **rest: object) -> Completed:
        """As systemd would; before and after each command the process may be ended."""
        known = self._file.is_file()
        self.state = json.loads(self._file.read_text()) if known else dict(_DEAD)
        self.next_pid = int(self.state.get("Last", "100"))
        if self.countdown:
            self.countdown.tick()
        done = super().run(argv, **rest)  # type: ignore[arg-type]
        words = tuple(argv)
        if words[0] == "systemctl" and words[1] in ("restart", "start"):
            self.state |= {"Last": str(self.next_pid), "Runs": self.runnable()}
        if words[0] == "systemctl" and words[1] == "stop":
            self.state |= {"Last": str(self.next_pid), "Runs": ""}
        if words[0] == "systemctl" and words[1] == "kill" and "Successor" in self.state:
            self.state |= {"Last": str(self.next_pid), "Next": self.runnable()}
        self._save()
        if self.countdown:
            self.countdown.tick()
        return done

    def _save(self) -> None:
        handle = os.open(self._file.with_suffix(".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(handle, json.dumps(self.state).encode())
        os.close(handle)
        self._file.with_suffix(".new").rename(self._file)

    def runnable(self) -> str:
        """What a start would run now: the release that ``current`` names, at the unit's port."""
        unit = self.root / "etc/systemd/system/sampan-mini.service"
        if not unit.is_file() or not (self.prefix / "current").is_symlink():
            return ""
        command = next(line for line in unit.read_text().splitlines() if line.startswith("ExecStart="))
        return f"{(self.prefix / 'current').readlink()} {command.rpartition(' ')[2]}"

    def taken_over(self) -> None:
        """The successor runs what was to be run when it was started."""
        self.state["Runs"] = self.state.pop("Next")

    def running(self) -> str:
        """What runs."""
        return str(json.loads(self._file.read_text()).get("Runs", "")) if self._file.is_file() else ""

    def reboot(self) -> None:
        """The machine starts again, with what is on its disk."""
        runs = self.runnable()
        state = {
            "ActiveState": "active" if runs else "inactive",
            "SubState": "running",
            "MainPID": "7",
            "Last": "100",
        }
        self._file.write_text(json.dumps(state | {"Runs": runs}))
        shutil.rmtree(self.root / "run/systemd/system.control", ignore_errors=True)
        for process in (self.root / "proc").glob("[0-9]*"):
            shutil.rmtree(process)


@dataclass
class Platter:
    """What of a tree is on the disk for good: the listing of each synced folder, the bytes of each synced file.

    Whatever was not synced is lost: a file has no bytes then, a folder nothing in it. Harsher than any file system.
    """

    root: Path
    listings: dict[int, dict[str, tuple[int, int, str]]] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    top: int = 0  # the inode of ``root``

    def sync(self) -> None:
        """All of it, as sync(2)."""
        self.top = self.root.stat().st_ino
        for folder in (
            self.root,
            *(path for path in self.root.rglob("*") if path.is_dir() and not path.is_symlink()),
        ):
            self._list(folder)
        for path in self.root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                self.contents[path.stat().st_ino] = path.read_bytes()

    def fsync(self, handle: int) -> None:
        """One file or folder, as fsync(2)."""
        path = Path(f"/proc/self/fd/{handle}").resolve()
        if path.is_dir():
            self._list(path)
        else:
            self.contents[os.fstat(handle).st_ino] = path.read_bytes()

    def _list(self, folder: Path) -> None:
        found: dict[str, tuple[int, int, str]] = {}
        for item in os.scandir(folder):
            facts = item.stat(follow_symlinks=False)
            found[item.name] = (
                facts.st_mode,
                facts.st_ino,
                str(Path(item.path).readlink()) if item.is_symlink() else "",
            )
        self.listings[folder.stat().st_ino] = found

    def copy(self) -> Platter:
        """As it is at this moment."""
        return Platter(self.root, dict(self.listings), dict(self.contents), self.top)

    def power_cut(self, own: Mapping[str, bytes]) -> None:
        """Let the tree be what the disk has; ``own`` are files of the machine's own tools, which sync them."""
        shutil.move(self.root, self.root.with_name("was"))
        self._build(self.root, self.top)
        for name, data in own.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(data)
        shutil.rmtree(self.root.with_name("was"))

    def _build(self, folder: Path, number: int) -> None:
        folder.mkdir()
        for name, (mode, inode, link) in self.listings.get(number, {}).items():
            path = folder / name
            if stat.S_ISLNK(mode):
                path.symlink_to(link)
            elif stat.S_ISDIR(mode):
                self._build(path, inode)
            else:
                path.write_bytes(self.contents.get(inode, b""))
                path.chmod(stat.S_IMODE(mode))
