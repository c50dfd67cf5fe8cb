"""The symbol versions that the machine's own libc and libstdc++ export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sampan.spec.target import LibcFacts
from sampan.survey import elf, verdefs

_TRIPLETS = {
    "aarch64": "aarch64-linux-gnu",
    "x86_64": "x86_64-linux-gnu",
    "loongarch64": "loongarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}


def facts(root: Path, arch: str) -> LibcFacts:
    """What libc.so.6, libstdc++.so.6 and libgomp.so.1 of the default folders export; None for what is not there."""
    libc = _versions(root, arch, "libc.so.6")
    cxx = _versions(root, arch, "libstdc++.so.6")
    return LibcFacts(
        glibc=verdefs.highest(libc, "GLIBC"),
        glibcxx=verdefs.highest(cxx, "GLIBCXX"),
        cxxabi=verdefs.highest(cxx, "CXXABI"),
        gomp=verdefs.highest(_versions(root, arch, "libgomp.so.1"), "GOMP"),
    )


def _versions(root: Path, arch: str, name: str) -> tuple[str, ...]:
    for folder in _folders(root, arch):
        path = folder / name
        found = elf.kind_of(path)
        if found is None or found.machine != arch:
            continue
        try:
            return verdefs.exported(path.read_bytes())
        except (OSError, ValueError):
            continue
    return ()


def _folders(root: Path, arch: str) -> Iterator[Path]:
    """The loader's default folders, Debian's multiarch ones first where they exist."""
    triplet = _TRIPLETS.get(arch)
    for parent in ("lib", "usr/lib"):
        if triplet:
            yield root / parent / triplet
    for name in ("lib64", "usr/lib64", "lib", "usr/lib"):
        yield root / name
