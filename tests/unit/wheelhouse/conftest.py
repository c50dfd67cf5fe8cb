"""Wheels of our own making, a fetcher that hands them out, a runner that compiles nothing."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sampan.spec.artefacts import RuntimeTree
from sampan.spec.ports import Completed


def wheel(
    folder: Path,
    name: str,
    files: dict[str, bytes],
    *,
    tag: str = "py3-none-any",
    metadata: str = "License-Expression: MIT\n",
    record: dict[str, bytes] | None = None,
) -> Path:
    """Write ``NAME-1.0-TAG.whl``; ``record`` replaces contents in RECORD alone, to make a wheel that lies."""
    info = f"{name}-1.0.dist-info"
    whole = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{metadata}".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n".encode(),
    }
    rows = []
    for member, data in whole.items():
        promised = (record or {}).get(member, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(promised).digest()).rstrip(b"=").decode()
        rows.append(f"{member},sha256={digest},{len(promised)}")
    rows.append(f"{info}/RECORD,,")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in whole.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/RECORD", "\n".join(rows) + "\n")
    return path


@dataclass
class FakeFetcher:
    """Gives the prepared wheel of each requirement and remembers what was asked for."""

    wheels: dict[str, Path] = field(default_factory=dict)
    asked: list[tuple[str, tuple[str, ...], frozenset[str]]] = field(default_factory=list)

    def wheel(self, requirement: str, *, tags: Sequence[str], hashes: Collection[str]) -> Path:
        """See ports.WheelFetcher."""
        self.asked.append((requirement, tuple(tags), frozenset(hashes)))
        return self.wheels[requirement]

    def pypi(self, requirement: str, *, file_name: str, sha256: str) -> Path:
        """Not for the wheelhouse."""
        raise AssertionError(requirement + file_name + sha256)

    def url(self, url: str, *, sha256: str | None, size: int | None = None) -> Path:
        """Not for the wheelhouse."""
        raise AssertionError(url, sha256, size)


@dataclass
class FakeRunner:
    """Every program ends with ``returncode``; ``calls`` are the argvs."""

    returncode: int = 0
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        """See ports.Runner."""
        self.calls.append(tuple(argv))
        return Completed(tuple(argv), self.returncode, "said why")


def runtime(arch: str = "aarch64", glibc: str = "2.36", python: str = "3.11.2") -> RuntimeTree:
    """A runtime that is only looked at."""
    return RuntimeTree(arch, f"/runtime/{arch}", python, glibc, "3.4.30", ())


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def fetcher() -> FakeFetcher:
    return FakeFetcher()
