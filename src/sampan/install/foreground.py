"""A server that runs in a terminal, with nothing installed: found by its pid file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sampan.install.lookup import Found
from sampan.install.machine import Machine

PID_FILE = "sampan.pid"  # in the run folder of a foreground server
_LAST_PORT = 65535


@dataclass(frozen=True)
class Foreground:
    """A running foreground server; ``host`` and ``port`` None where its pid file does not say."""

    pid: int
    host: str | None = None
    port: int | None = None


def pid_text(server: Foreground) -> str:
    """What stands in the pid file: process, host and port, a line each."""
    return f"{server.pid}\n{server.host}\n{server.port}\n"


def foreground(machine: Machine, run_folder: Path) -> Foreground | None:
    """The server that the pid file names, if that process still is a sampan server."""
    try:
        lines = (run_folder / PID_FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    pid, host, port = (*(line.strip() for line in lines[:3]), "", "", "")[:3]
    if not pid.isdecimal() or not machine.alive(int(pid)):
        return None
    words = machine.read(f"proc/{pid}/cmdline").split("\0")
    if "serve" not in words or not any("sampan" in word for word in words):
        return None
    known = bool(host) and port.isdecimal() and 0 < int(port) <= _LAST_PORT
    return Foreground(int(pid), host, int(port)) if known else Foreground(int(pid))


def foreground_pid(machine: Machine, run_folder: Path) -> int | None:
    """The process that the pid file names, if it still is a sampan server."""
    server = foreground(machine, run_folder)
    return server.pid if server else None


def at(found: Found, server: Foreground) -> Found:
    """The service, where its foreground server really listens."""
    return replace(found, host=server.host or found.host, port=server.port or found.port)
