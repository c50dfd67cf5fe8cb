"""The scripts and the command line of the sandbox, rendered from values alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sampan import i18n
from sampan.rehearse.cpu import BINFMT_MASK, binfmt_magic
from sampan.rehearse.machine import Way

USER = 1000  # numbers of the unprivileged user and its group; the root folder has no passwd file to name them
HOME = "/home/sampan"
_SMALLEST_PAGE = 4096  # bytes; x86-64's and so most workshops'
_RESERVED = "0x4000000000"  # 256 GiB of addresses, no memory


@dataclass(frozen=True)
class Limits:
    """Seconds after which a step has failed."""

    install: int = 300
    ready: int = 300
    selftest: int = 600
    http: int = 120
    stop: int = 60
    session: int = 1800

    @property
    def all_steps(self) -> int:
        """More than all steps of one rehearsal together can take."""
        return self.install + self.ready + self.selftest + 3 * self.http + self.stop + 120


@dataclass(frozen=True)
class Sandbox:
    """One emulated target: folders and files of the workshop that it is made from.

    ``folder`` is an empty folder of ours that holds everything below; ``bundle`` the bundle's folder; ``port`` where
    the service listens inside.
    """

    folder: Path
    bundle: Path
    busybox: Path
    way: Way
    arch: str
    page_size: int
    port: int
    name: str
    limits: Limits = Limits()

    @property
    def home(self) -> Path:
        """What the sandbox sees as /home."""
        return self.folder / "home"

    @property
    def prefix(self) -> str:
        """Where the bundle is installed, as the sandbox sees it."""
        return f"{HOME}/opt/{self.name}"


def body(name: str) -> str:
    """One of the scripts as shipped."""
    return (resources.files("sampan") / "data" / "rehearse" / name).read_text(encoding="utf-8")


def outer(box: Sandbox) -> str:
    """The script that makes the root folder; runs as root in namespaces of its own."""
    return _with_variables(
        {
            "root": box.folder / "root",
            "home": box.home,
            "binfmt": box.folder / "binfmt",
            "steps": box.folder / "steps.sh",
            "cpuinfo": box.folder / "cpuinfo",
            "busybox": box.busybox.resolve(),
            "bundle": box.bundle.resolve(),
            "bundle_name": box.bundle.name,
            "user": USER,
            "qemu": box.folder / "qemu" if box.way.qemu else "",
            "binfmt_magic": binfmt_magic(box.arch) if box.way.qemu else "",
            "binfmt_mask": BINFMT_MASK if box.way.qemu else "",
        },
        body("sandbox.sh"),
    )


def inner(box: Sandbox, mode: str) -> str:
    """The steps, as the unprivileged user; ``mode`` is rehearse or session."""
    limits = box.limits
    return _with_variables(
        {
            "mode": mode,
            "bundle_name": box.bundle.name,
            "prefix": box.prefix,
            "port": box.port,
            "install_limit": limits.install,
            "ready_limit": limits.ready,
            "selftest_limit": limits.selftest,
            "http_limit": limits.http,
            "stop_limit": limits.stop,
            "session_limit": limits.session,
        },
        body("steps.sh"),
    )


def command(box: Sandbox) -> tuple[str, ...]:
    """What the runner runs. The environment inside is exactly the one given here.

    ``setpriv --pdeathsig`` and ``--kill-child``: should this program be killed, the kernel ends the sandbox.
    """
    inside = ("env", "-i", *(f"{name}={value}" for name, value in environment(box).items()))
    spaces = ("unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child")
    chain = ("setpriv", "--pdeathsig", "KILL", *spaces, *inside, "sh", str(box.folder / "sandbox.sh"))
    return ("sh", str(box.folder / "userns.sh"), *chain) if box.way.qemu else chain


def environment(box: Sandbox) -> dict[str, str]:
    """Every variable that the sandbox's processes start with."""
    plain = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": HOME, "LANG": "C", "SAMPAN_LANG": i18n.language()}
    return {**plain, **_emulator(box.way.cpu.qemu, box.page_size)} if box.way.cpu.emulated else plain


def _emulator(cpu: str, page_size: int) -> dict[str, str]:
    """The emulator's settings; it hands them on to every program that a program starts."""
    wanted = {"QEMU_CPU": cpu, "QEMU_PAGESIZE": str(page_size)}
    if page_size > _SMALLEST_PAGE:
        # Where the target's pages are larger than this machine's, qemu 7.2 may choose addresses for mmap that are not
        # aligned to them, and then refuses: 7 % of the engine's starts died so. In a range of its own none did.
        wanted["QEMU_RESERVED_VA"] = _RESERVED
    return wanted


def _with_variables(values: Mapping[str, object], script: str) -> str:
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in values.items()]
    return "\n".join(["#!/bin/sh", *lines, "", script])


def cpuinfo(real: str, way: Way, cpus: int) -> str:
    """What /proc/cpuinfo shows inside: qemu-user does not emulate it, and a native CPU may have too much."""
    shown = " ".join(sorted(way.cpu.shown))
    if not way.cpu.emulated:
        return "".join(_filtered(line, way.cpu.shown) for line in real.splitlines(keepends=True))
    if way.cpu.midr:
        implementer, part = way.cpu.midr
        fields = f"Features\t: {shown}\nCPU implementer\t: {implementer}\nCPU architecture: 8\nCPU part\t: {part}\n"
    else:
        fields = f"model name\t: {way.cpu.name}\nflags\t\t: {shown}\n"
    return "".join(f"processor\t: {number}\n{fields}\n" for number in range(cpus))


def _filtered(line: str, shown: frozenset[str]) -> str:
    label, colon, rest = line.partition(":")
    if label.strip() not in ("flags", "Features"):
        return line
    return f"{label}{colon} {' '.join(word for word in rest.split() if word in shown)}\n"
