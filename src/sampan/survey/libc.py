"""The release of the machine's own glibc, and the symbol versions that its libstdc++ and libgomp export.

libc.so.6 may define no symbol of its own release (2.31 on arm64 ends with GLIBC_2.30, its libm.so.6 with GLIBC_2.31;
read in Debian 11), so its banner counts: every version up to that release is in one of glibc's libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sampan.spec.target import LibcFacts
from sampan.survey import elf, verdefs
from sampan.survey.files import read_bytes

_TRIPLETS = {
    "aarch64": "aarch64-linux-gnu",
    "x86_64": "x86_64-linux-gnu",
    "loongarch64": "loongarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}


def facts(root: Path, arch: str) -> LibcFacts:
    """What libc.so.6, libstdc++.so.6 and libgomp.so.1 of the default folders export; None for what is not there."""
    cxx = _versions(root, arch, "libstdc++.so.6")
    return LibcFacts(
        glibc=_release(root, arch),
        glibcxx=verdefs.highest(cxx, "GLIBCXX"),
        cxxabi=verdefs.highest(cxx, "CXXABI"),
        gomp=verdefs.highest(_versions(root, arch, "libgomp.so.1"), "GOMP"),
    )


def _release(root: Path, arch: str) -> str | None:
    told = re.search(rb"release version (\d+\.\d+)", _image(root, arch, "libc.so.6"))
    return told[1].decode() if told else verdefs.highest(_versions(root, arch, "libc.so.6"), "GLIBC")


def _versions(root: Path, arch: str, name: str) -> tuple[str, ...]:
    try:
        return verdefs.exported(_image(root, arch, name))
    except ValueError:
        return ()


def _image(root: Path, arch: str, name: str) -> bytes:
    """The library's bytes; empty where there is none for that architecture."""
    for folder in _folders(root, arch):
        path = folder / name
        found = elf.kind_of(path)
        if found is not None and found.machine == arch:
            return read_bytes(path)
    return b""


def _folders(root: Path, arch: str) -> Iterator[Path]:
    """The loader's default folders, Debian's multiarch ones first where they exist."""
    triplet = _TRIPLETS.get(arch)
    for parent in ("lib", "usr/lib"):
        if triplet:
            yield root / parent / triplet
    for name in ("lib64", "usr/lib64", "lib", "usr/lib"):
        yield root / name
