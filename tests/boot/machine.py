"""An emulated aarch64 computer: qemu-system, told by QMP, entered by ssh."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.boot.debian_root import DebianRoot

CPU, CORES, MEMORY = "cortex-a76", 2, "2G"
#: generous: everything is slow where each instruction is translated, on a machine that does other things too
BOOT_SECONDS, COMMAND_SECONDS = 900.0, 1800.0
_ALIVE = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=8", "-o", "ConnectTimeout=30")


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Computer:
    """One computer with one disk; its network is this machine's loopback alone."""

    root: DebianRoot
    work: Path  # disk, console's log, sockets
    nice: int = 5
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def disk(self) -> Path:
        """Its disk, as a file of this machine."""
        return self.work / "disk.img"

    def switch_on(self) -> None:
        """Start it; returns before it has booted."""
        known = self.root.host_key.read_text().split()[:2]
        (self.work / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {' '.join(known)}\n")
        with (self.work / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.work
            )

    def command(self) -> list[str]:
        """qemu's."""
        net = f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"
        disk = f"if=none,id=disk,format=raw,cache=writeback,file={self.disk}"
        words = f"""
            nice -n {self.nice} qemu-system-aarch64 -machine virt,gic-version=3 -cpu {CPU} -smp {CORES} -m {MEMORY}
            -accel tcg,thread=multi -display none -monitor none -serial file:console.log
            -qmp unix:qmp,server=on,wait=off -device virtio-blk-pci,drive=disk
            -device virtio-net-pci,netdev=net,romfile= -device virtio-rng-pci
        """.split()
        boot = ["-kernel", str(self.root.kernel), "-initrd", str(self.root.initrd)]
        append = ["-append", "root=/dev/vda rw console=ttyAMA0 quiet"]
        return [*words, "-drive", disk, "-netdev", net, *boot, *append]

    def reset(self) -> None:
        """The reset button: nothing in it is asked or told."""
        with closing(socket.socket(socket.AF_UNIX)) as line:
            line.settimeout(60)
            line.connect(str(self.work / "qmp"))
            stream = line.makefile("rw", encoding="utf-8")
            stream.readline()  # its greeting
            for command in ("qmp_capabilities", "system_reset"):
                stream.write(json.dumps({"execute": command}) + "\n")
                stream.flush()
                while "return" not in (answer := json.loads(stream.readline())):
                    assert "error" not in answer, answer

    def wait_until_booted(self, after: str = "") -> str:
        """Until systemd has started everything; gives the boot's id, which must be another one than ``after``."""
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline:
            assert self._process is not None and self._process.poll() is None, self.last_words()
            done = self.ssh("cat /proc/sys/kernel/random/boot_id && systemctl is-system-running", seconds=120)
            words = done.stdout.split()
            if len(words) == 2 and words[0] != after and words[1] in ("running", "degraded"):
                return words[0]
            time.sleep(2)
        raise AssertionError(f"it did not boot\n{self.last_words()}")

    def last_words(self) -> str:
        """The end of what its console and qemu printed."""
        logs = [self.work / "console.log", self.work / "qemu.log"]
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs if log.exists())

    def ssh(
        self, script: str, *, stdin: str = "", seconds: float = COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell script in it as root; 255 where it cannot be reached."""
        command = [*self._client(), "root@127.0.0.1", script]
        try:
            return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=seconds)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 255, "", f"no end after {seconds:.0f} s")

    def _client(self) -> list[str]:
        words = ["ssh", "-F", "none", "-T", "-p", str(self.port), "-i", str(self.root.key), *_ALIVE]
        return [*words, "-o", f"UserKnownHostsFile={self.work / 'known_hosts'}", "-o", "BatchMode=yes"]

    def run(self, *words: str) -> str:
        """A command in it that must go well, and what it printed."""
        script = shlex.join(words)
        done = self.ssh(script)
        assert done.returncode == 0, f"{script}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *words: str) -> dict[str, Any]:
        """The document that a command printed, whatever its exit code."""
        text = self.ssh(shlex.join(words)).stdout
        try:
            return dict(json.loads(text))
        except ValueError:
            return {}

    @contextmanager
    def tunnel(self, port: int) -> Iterator[int]:
        """A port of this machine's loopback that leads to that one of its own."""
        near = free_port()
        command = [*self._client(), "-N", "-o", "ExitOnForwardFailure=yes", "-L"]
        process = subprocess.Popen(
            [*command, f"127.0.0.1:{near}:127.0.0.1:{port}", "root@127.0.0.1"], stdin=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: listens(near), 300, "the tunnel")
            yield near
        finally:
            process.terminate()
            process.wait(60)

    def switch_off(self) -> None:
        """Ask it to go down, and wait."""
        self.ssh("systemctl poweroff", seconds=120)
        assert self._process is not None
        self._process.wait(BOOT_SECONDS)
        self._process = None

    def unplug(self) -> None:
        """End the emulation, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def wait_for(what: Callable[[], bool], seconds: float, name: str) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"{name}: waited {seconds:.0f} s in vain"
        time.sleep(1)


def listens(port: int) -> bool:
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False
