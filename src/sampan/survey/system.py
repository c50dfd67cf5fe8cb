"""os-release, kernel, memory, systemd, Python and GPUs: small files, pure parsers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from sampan.spec.target import GpuFacts, OsFacts
from sampan.survey.files import read_bytes, read_text


def os_facts(release: str, kernel: str) -> OsFacts:
    """/etc/os-release and /proc/sys/kernel/osrelease; an empty text means unknown."""
    fields = _assignments(release)
    return OsFacts(
        id=fields.get("ID", "linux"),
        name=fields.get("NAME", "Linux"),
        version=fields.get("VERSION", fields.get("VERSION_ID", "")),
        kernel=kernel.strip() or None,
    )


def _assignments(text: str) -> dict[str, str]:
    """Shell-like NAME=value lines, quoted or not (os-release(5))."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and name.isidentifier():
            try:
                fields[name] = " ".join(shlex.split(value))
            except ValueError:  # an unclosed quote: keep what is there
                fields[name] = value.strip("\"'")
    return fields


def memory_bytes(meminfo: str) -> int | None:
    """MemTotal of /proc/meminfo, in bytes."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def systemd_version(root: Path) -> int | None:
    """The installed systemd, from the name of its private library, else (219 has none) from its executable."""
    for pattern in ("usr/lib/systemd", "lib/systemd", "usr/lib64/systemd", "usr/lib/*/systemd"):
        for library in sorted(root.glob(f"{pattern}/libsystemd-shared-*.so")):
            found = re.match(r"libsystemd-shared-(\d+)", library.name)
            if found:
                return int(found[1])
    for name in ("usr/lib/systemd/systemd", "lib/systemd/systemd"):
        stamp = re.search(rb"systemd (\d{3})(?:[ ~.(-][^\0]*)?\0", read_bytes(root / name))
        if stamp:
            return int(stamp[1])
    return None


def python_version(root: Path) -> str | None:
    """``3.7`` where /usr/bin/python3 links to python3.7; None otherwise."""
    try:
        target = (root / "usr/bin/python3").readlink().name
    except OSError:
        return None
    found = re.fullmatch(r"python(3\.\d+)", target)
    return found[1] if found else None


def nvidia_driver(text: str) -> str | None:
    """The driver's version in /proc/driver/nvidia/version: the first number with points in it."""
    found = re.search(r"NVRM version:.*?\s(\d+(?:\.\d+)+)\s", text)
    return found[1] if found else None


def gpus(root: Path) -> tuple[GpuFacts, ...]:
    """NVIDIA cards that the loaded driver lists, in bus order. No process is started."""
    driver = nvidia_driver(read_text(root / "proc/driver/nvidia/version"))
    found = []
    for path in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        model = re.search(r"^Model:\s*(.+?)\s*$", read_text(path), re.MULTILINE)
        if model:
            found.append(GpuFacts(name=model[1], driver=driver))
    return tuple(found)


def allowed_cpus(status: str) -> str | None:
    """/proc/self/status: the CPUs that affinity and cpuset leave to this process, as the kernel lists them."""
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return found[1] if found else None
