"""The release of the machine's own glibc, and the symbol versions that its libstdc++ and libgomp export.

libc.so.6 may define no symbol of its own release (2.31 on arm64 ends with GLIBC_2.30, its libm.so.6 with GLIBC_2.31;
read in Debian 11), so its banner counts: every version up to that release is in one of glibc's libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sampan.spec.target import LibcFacts
from sampan.survey import elf, verdefs
from sampan.survey.files import read_bytes

_CACHED = re.compile(rb"(/[A-Za-z0-9._/+-]*)/[A-Za-z0-9._+-]*")  # a file, as /etc/ld.so.cache names it
_TRIPLETS = {
    "aarch64": "aarch64-linux-gnu",
    "x86_64": "x86_64-linux-gnu",
    "loongarch64": "loongarch64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}


def facts(root: Path, arch: str) -> LibcFacts:
    """What libc.so.6, libstdc++.so.6 and libgomp.so.1 export; None for what the loader would not find."""
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
    path = find(arch, name, folders(root, arch))
    return read_bytes(path) if path else b""


def find(arch: str, name: str, places: Iterable[Path]) -> Path | None:
    """The first library of that name and architecture."""
    for folder in places:
        found = elf.kind_of(folder / name)
        if found is not None and found.machine == arch:
            return folder / name
    return None


def present(root: Path, arch: str, names: Iterable[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Which of these the loader would find, and which not; (None, ()) where there is no glibc to load them."""
    places = tuple(folders(root, arch))
    if find(arch, "libc.so.6", places) is None:
        return None, ()
    found = {name: find(arch, name, places) for name in names}
    return tuple(name for name in found if found[name]), tuple(name for name in found if not found[name])


def folders(root: Path, arch: str) -> Iterator[Path]:
    """The loader's default folders, Debian's multiarch ones first where they exist, then those of its cache."""
    triplet = _TRIPLETS.get(arch)
    for parent in ("lib", "usr/lib"):
        if triplet:
            yield root / parent / triplet
    for name in ("lib64", "usr/lib64", "lib", "usr/lib"):
        yield root / name
    lines = read_bytes(root / "etc/ld.so.cache").replace(b"\0", b"\n").split(b"\n")
    named = {match[1].decode() for match in map(_CACHED.fullmatch, lines) if match}
    yield from (root / folder.lstrip("/") for folder in sorted(named))
