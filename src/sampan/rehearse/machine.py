"""What this machine can rehearse with: facts read below a root folder, and the decision they lead to."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sampan.rehearse import cpu
from sampan.rehearse.cpu import StandIn
from sampan.spec.target import TargetProfile

TOOLS = ("unshare", "mount", "chroot", "setpriv", "env", "sh")
_PRIVATE_BINFMT_SINCE = (6, 7)  # Linux commit 21ca59b365c0: binfmt_misc mounts of a user namespace's own


@dataclass(frozen=True)
class Registration:
    """One entry of binfmt_misc. ``machine`` is the ELF e_machine that it matches, hexadecimal, in file order."""

    name: str
    machine: str
    enabled: bool
    flags: str


@dataclass(frozen=True)
class MachineFacts:
    """What counts for a rehearsal. ``qemu`` is the static emulator for the target's architecture, None if absent."""

    arch: str
    root: bool
    missing_tools: tuple[str, ...]
    kernel: tuple[int, int]
    page_size: int
    features: frozenset[str]
    qemu: str | None
    binfmt_mounted: bool
    registrations: tuple[Registration, ...]
    user_namespaces: int


@dataclass(frozen=True)
class Way:
    """How the bundle will run: on which CPU, and through which registration of the emulator.

    ``binfmt``: ``none`` (native), ``machine`` (the machine's own registration) or ``private`` (one that only the
    sandbox's user namespace sees).
    """

    cpu: StandIn
    binfmt: str
    qemu: str | None = None


@dataclass(frozen=True)
class Refusal:
    """Why no rehearsal is possible here: a key below ``rehearse.skip.`` with its values."""

    key: str
    values: tuple[tuple[str, str], ...] = ()


def look(arch: str, root: Path = Path("/"), which: Callable[[str], str | None] = shutil.which) -> MachineFacts:
    """Read the facts for a target of ``arch`` below ``root``; ``which`` finds programs."""
    release = platform.release() if root == Path("/") else _text(root / "proc/sys/kernel/osrelease")
    folder = root / "proc/sys/fs/binfmt_misc"
    spaces = _text(root / "proc/sys/user/max_user_namespaces").strip()
    return MachineFacts(
        arch=platform.machine(),
        root=os.geteuid() == 0,
        missing_tools=tuple(tool for tool in TOOLS if which(tool) is None),
        kernel=_version(release),
        page_size=os.sysconf("SC_PAGE_SIZE"),
        features=features_of(_text(root / "proc/cpuinfo")),
        qemu=which(cpu.table().program.get(arch, "")),
        binfmt_mounted=(folder / "status").exists(),
        registrations=_registrations(folder),
        user_namespaces=int(spaces) if spaces.isdigit() else 0,
    )


def decide(profile: TargetProfile, facts: MachineFacts) -> Way | Refusal:
    """Native where this CPU is no more than the target's, else emulated, else native with what it hides said."""
    if not facts.root:
        return Refusal("root")
    if facts.missing_tools:
        return Refusal("tools", (("tools", ", ".join(facts.missing_tools)),))
    same = facts.arch == profile.arch
    if same and not cpu.exceeds(profile, facts.features):
        return Way(cpu.native(profile, facts.features), "none")
    emulated = _emulated(profile, facts)
    if same and isinstance(emulated, Refusal):
        return Way(cpu.native(profile, facts.features), "none")
    return emulated


def _emulated(profile: TargetProfile, facts: MachineFacts) -> Way | Refusal:
    stand_in, arch = cpu.emulated(profile), profile.arch
    if stand_in is None:
        return Refusal("arch", (("arch", arch),))
    machine = cpu.table().machine[arch]
    matching = [entry for entry in facts.registrations if entry.machine == machine]
    # An emulator opened at registration (flag F) is found from inside an empty root. The machine's own
    # registration for its own architecture would catch every program, so nobody has one.
    if any(entry.enabled and "F" in entry.flags for entry in matching):
        return Way(stand_in, "machine")
    program = cpu.table().program[arch]
    if facts.qemu and facts.kernel >= _PRIVATE_BINFMT_SINCE and facts.user_namespaces > 0:
        return Way(stand_in, "private", facts.qemu)
    if facts.qemu is None:
        return Refusal("qemu", (("program", program),))
    if not facts.binfmt_mounted:
        return Refusal("binfmt-unmounted")
    name = matching[0].name if matching else program.removesuffix("-static")
    line = f":{name}:M::{cpu.binfmt_magic(arch)}:{cpu.BINFMT_MASK}:{facts.qemu}:PF"
    values = (("name", name), ("line", line))
    return Refusal("binfmt-flags", values) if matching else Refusal("binfmt", (*values, ("qemu", facts.qemu)))


def features_of(cpuinfo: str) -> frozenset[str]:
    """The first CPU's features in the text of /proc/cpuinfo; empty where there are none."""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return frozenset(found.group(1).split()) if found else frozenset()


def _registrations(folder: Path) -> tuple[Registration, ...]:
    if not folder.is_dir():
        return ()
    names = sorted(entry.name for entry in folder.iterdir() if entry.name not in ("register", "status"))
    return tuple(parse_registration(name, _text(folder / name)) for name in names)


def parse_registration(name: str, text: str) -> Registration:
    """One file of binfmt_misc, as Linux's Documentation/admin-guide/binfmt-misc.rst gives it."""
    fields = dict(line.partition(" ")[::2] for line in text.splitlines() if line.strip())
    magic = fields.get("magic", "") if fields.get("offset", "0") == "0" else ""
    is_elf = magic.startswith("7f454c46")
    return Registration(name, magic[36:40] if is_elf else "", "enabled" in fields, fields.get("flags:", ""))


def _version(release: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
