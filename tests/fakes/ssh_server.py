"""A real OpenSSH server on loopback, and a proxy before it that cuts the line."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import asyncssh
import pytest

from sampan.edge.ssh import Address, SshSettings

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
_CONFIG = """
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
"""


@dataclass(frozen=True)
class Server:
    """A running sshd."""

    port: int
    user: str
    folder: Path

    def address(self, port: int | None = None) -> Address:
        """Of the server, or of a proxy before it."""
        return Address("127.0.0.1", port or self.port, self.user)

    def settings(self, **more: object) -> SshSettings:
        """How its one user logs in."""
        given: dict[str, object] = {"known_hosts": (), "accept": self.fingerprint, **more}
        return SshSettings(identities=(self.folder / "identity",), **given)  # type: ignore[arg-type]

    @property
    def fingerprint(self) -> str:
        """Of its host key."""
        return asyncssh.read_private_key(self.folder / "host").get_fingerprint()


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(folder: Path, config: str, keys: Mapping[str, str] = MappingProxyType({})) -> Iterator[Server]:
    """sshd with these lines in its configuration too, and ``keys`` (name: algorithm) made. Skips where none runs."""
    if not Path(SSHD).is_file():
        pytest.skip("no OpenSSH server here")
    if os.getuid() == 0 and not Path("/run/sshd").is_dir():
        pytest.skip("sshd needs its folder /run/sshd when it is started by root")
    port = free_port()
    for name, algorithm in {"host": "ssh-ed25519", "identity": "ssh-ed25519", **keys}.items():
        asyncssh.generate_private_key(algorithm).write_private_key(folder / name)
        (folder / name).chmod(0o600)
    identity = asyncssh.read_private_key(folder / "identity")
    (folder / "authorized").write_bytes(identity.export_public_key())
    (folder / "config").write_text(f"Port {port}\n{_CONFIG.format(folder=folder)}{config}\n")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"], stderr=log)
    try:
        _await(port, process, folder / "log")
        yield Server(port, subprocess.check_output(["id", "-un"], text=True).strip(), folder)
    finally:
        process.terminate()
        process.wait(10)


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(100):
        if process.poll() is not None:
            pytest.skip(f"sshd does not start here: {log.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("sshd does not listen")


class CuttingProxy:
    """Passes bytes on to ``port``; each connection is cut after ``limits``' next number of bytes to the server.

    ``silent``: at the limit nothing passes any more, and nobody is told.
    """

    def __init__(self, port: int, limits: list[int], *, silent: bool = False) -> None:
        self._to, self._limits, self._silent = port, limits, silent
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """No new connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # closing alone does not wake a thread that waits in accept
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            limit = self._limits.pop(0) if self._limits else None
            server = socket.create_connection(("127.0.0.1", self._to))
            threading.Thread(target=self._pass, args=(client, server, limit), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, None), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, left: int | None) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data if left is None else data[:left])
                if left is not None:
                    left -= len(data)
                    if left <= 0:
                        break
            if left is not None and left <= 0 and self._silent:
                time.sleep(60)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
