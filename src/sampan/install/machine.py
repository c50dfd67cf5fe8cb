"""The target as install sees it: its systemd, its accounts, its files in /proc and /etc."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sampan.errors import MissingToolError, ServiceError
from sampan.install.model import SCRIPT, SYSTEM, USER, home, unit_name
from sampan.spec.ports import Completed, Runner

_SBIN = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")  # a plain `su` leaves sbin out of PATH
SERVICE_SCRIPT = "service.sh"  # in the prefix
RUN = "run"  # beside it: its pid files and log
_VERSION = re.compile(r"systemd (\d+)")


@dataclass(frozen=True)
class Machine:
    """``root`` is ``/`` but in tests, and is laid before /proc, /etc and /run; never before the prefix.

    ``scope``: who keeps the service alive: systemd, the user's own systemd, or a script in ``prefix``.
    """

    runner: Runner
    root: Path = Path("/")
    scope: str = SYSTEM
    prefix: Path | None = None

    def unit_file(self, name: str) -> Path:
        """What keeps the service ``name`` alive: a unit, or the script that stands in for systemd."""
        if self.scope == SCRIPT and self.prefix is not None:
            return self.prefix / SERVICE_SCRIPT
        if self.scope == USER:
            settings = Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config")
            return settings / "systemd/user" / unit_name(name)
        return self.root / "etc/systemd/system" / unit_name(name)

    def manage(self, name: str, *words: str) -> tuple[str, ...]:
        """The command that does ``words`` (of systemctl) to the service ``name``."""
        if self.scope == SCRIPT:
            return ("sh", str(self.unit_file(name)), *words)
        whose = ("--user",) if self.scope == USER else ()
        unit = () if words[0] == "daemon-reload" else (unit_name(name),)
        return ("systemctl", *whose, *words, *unit)

    def run(self, *argv: str, timeout: float | None = 120.0) -> Completed:
        """Run a tool of the target. Raises MissingToolError."""
        path = os.pathsep.join(dict.fromkeys((*os.environ.get("PATH", "").split(os.pathsep), *_SBIN)))
        return self.runner.run(argv, env={"PATH": path.strip(os.pathsep), "LC_ALL": "C"}, timeout=timeout)

    def must(self, *argv: str, timeout: float | None = 120.0) -> str:
        """Run a tool of the target and give its output. Raises ServiceError with it where the tool failed."""
        done = self.run(*argv, timeout=timeout)
        if done.returncode != 0:
            output = done.output.strip() or "-"
            raise ServiceError("install.command", command=" ".join(argv), code=done.returncode, output=output)
        return done.output

    def attempt(self, *argv: str) -> bool:
        """Run a tool whose failure does not matter here; whether it went well."""
        try:
            return self.run(*argv).returncode == 0
        except MissingToolError:
            return False

    def read(self, path: str) -> str:
        """A text file below ``root``; empty where there is none."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def systemd_version(self) -> int | None:
        """The running systemd's version, None where another init runs (or none, as in most containers)."""
        if not (self.root / "run/systemd/system").is_dir():
            return None
        try:
            match = _VERSION.search(self.run("systemctl", "--version").output)
            if self.scope == USER and not self.attempt("systemctl", "--user", "show-environment"):
                return None
        except MissingToolError:
            return None
        return int(match[1]) if match else None

    def state(self, name: str) -> dict[str, str]:
        """What systemd says of a service, property by property; unknown ones are left out by older versions."""
        wanted = (
            "LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,MemoryCurrent,ActiveEnterTimestamp,Result"
            ",InactiveEnterTimestamp"
            ",StatusText,MemoryMax,MemoryLimit"
        )
        return parse_properties(self.must(*self.manage(name, "show", f"--property={wanted}")))

    def log_command(self, name: str, *words: str) -> tuple[str, ...]:
        """The command that shows what the service printed; ``words`` are journalctl's."""
        if self.scope == SCRIPT:
            return self.manage(name, "logs", *words)
        which = "--user-unit" if self.scope == USER else "--unit"
        return ("journalctl", which, unit_name(name), *words)

    def journal(self, name: str, lines: int = 30) -> str:
        """The last lines that a service printed since it was last started, for people."""
        try:
            since = self._since_start(name)
            done = self.run(*self.log_command(name, f"--lines={lines}", *since, "--no-pager", "--output=cat"))
        except MissingToolError:
            return ""
        return done.output.strip()

    def _since_start(self, name: str) -> tuple[str, ...]:
        """Leave out what an earlier run said; the moment relative to now, which every journalctl reads alike.

        A script's log has no times.
        """
        if self.scope == SCRIPT:
            return ()
        done = self.run(*self.manage(name, "show", "--property=InactiveExitTimestampMonotonic"))
        began = number(parse_properties(done.output), "InactiveExitTimestampMonotonic")
        return (f"--since=-{int(time.monotonic() - began / 1e6) + 1}s",) if began else ()

    def end_process(self, pid: int, seconds: float) -> bool:
        """Ask a process to end and wait; whether it is gone."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.alive(pid):
                return True
            time.sleep(0.1)
        return False

    def alive(self, pid: int) -> bool:
        """Whether a process runs; one that ended and waits for its parent does not."""
        state = self.read(f"proc/{pid}/stat").rpartition(")")[2].split()
        return bool(state) and state[0] not in "ZX"


def parse_properties(output: str) -> dict[str, str]:
    """``systemctl show``: one ``Key=value`` a line."""
    pairs = (line.partition("=") for line in output.splitlines() if "=" in line)
    return {key: value for key, _, value in pairs}


def number(properties: Mapping[str, str], key: str) -> int | None:
    """A numeric property; None where systemd does not know it (``[not set]``, or all bits set)."""
    value = properties.get(key, "")
    return int(value) if value.isdecimal() and int(value) != 2**64 - 1 else None


def listening_ports(tables: Sequence[str]) -> frozenset[int]:
    """TCP ports with a listener, from the text of /proc/net/tcp and tcp6."""
    rows = (line.split() for table in tables for line in table.splitlines()[1:])
    return frozenset(int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == "0A")


def memory(meminfo: str) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    pairs = (line.split() for line in meminfo.splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in pairs if len(words) >= 2 and words[1].isdecimal()}


def account_exists(passwd: str, name: str) -> bool:
    """Whether a line of /etc/passwd or /etc/group is of ``name``."""
    return any(line.split(":", 1)[0] == name for line in passwd.splitlines())
