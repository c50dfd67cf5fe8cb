"""What ``data/runtime.toml`` says the runtime is made of."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from importlib import resources

from sampan.errors import IncompatibleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOADER = "LOADER"  # in the list of libraries: the dynamic loader, whose name differs by architecture


@dataclass(frozen=True)
class Patch:
    """One replacement in the standard library; ``find`` must occur exactly once in ``file``."""

    file: str
    find: str
    replace: str


@dataclass(frozen=True)
class Architecture:
    """One architecture by its three names and its loader's file name."""

    name: str  # uname -m
    debian: str
    triplet: str
    loader: str


@dataclass(frozen=True)
class Facts:
    """The whole file. ``packages`` maps a package to the SONAMEs taken from it."""

    python: str
    suite: str
    keyrings: tuple[str, ...]
    packages: dict[str, tuple[str, ...]]
    omit_stdlib: tuple[str, ...]
    omit_extensions: tuple[str, ...]
    patches: tuple[Patch, ...]
    architectures: dict[str, Architecture]
    text: str  # the file itself: part of every cache key

    def omits(self, relative: str) -> bool:
        """Whether this path below ``lib/python3.x`` stays behind."""
        parts = relative.split("/")
        if parts[0] == "lib-dynload":
            return parts[-1].partition(".")[0] in self.omit_extensions
        return any(fnmatch(part, pattern) for part in (parts[0], parts[-1]) for pattern in self.omit_stdlib)


@cache
def facts() -> Facts:
    """Read the data file, once."""
    text = (resources.files("sampan") / "data" / "runtime.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Facts(
        python=data["python"],
        suite=data["suite"],
        keyrings=tuple(data["keyrings"]["paths"]),
        packages={name: tuple(libraries) for name, libraries in data["packages"].items()},
        omit_stdlib=tuple(data["omit"]["stdlib"]),
        omit_extensions=tuple(data["omit"]["extensions"]),
        patches=tuple(Patch(item["file"], item["find"], item["replace"]) for item in data["patch"]),
        architectures={name: Architecture(name, *names) for name, names in data["architectures"].items()},
        text=text,
    )


def architecture(arch: str) -> Architecture:
    """The names of one architecture. Raises IncompatibleError ``runtime.architecture``."""
    known = facts().architectures
    if arch not in known:
        raise IncompatibleError("runtime.architecture", arch=arch, known=", ".join(sorted(known)))
    return known[arch]
