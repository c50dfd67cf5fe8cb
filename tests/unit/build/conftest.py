"""Executables and archives of our own making, and a runner that builds nothing."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sampan.spec.plan import EngineSettings, Plan, Variant
from sampan.spec.ports import Completed

TOP = "package-1.0/vendor/engine"
_HEADER, _PROGRAM_HEADER = 64, 56
MACHINES = {"aarch64": 183, "x86_64": 62}


def elf(machine: int = MACHINES["aarch64"], segments: Sequence[tuple[int, int]] = ((1, 0x10000),)) -> bytes:
    """A 64-bit little-endian executable of headers alone; a segment is its (p_type, p_align)."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, 0, _HEADER, 0, 0, _HEADER, _PROGRAM_HEADER, len(segments), 64, 0, 0
    )
    return (
        ident + head + b"".join(struct.pack("<IIQQQQQQ", kind, 5, 0, 0, 0, 0, 0, align) for kind, align in segments)
    )


def archive(path: Path, files: Mapping[str, bytes], *odd: tarfile.TarInfo) -> Path:
    """A gzipped tar with ``files`` below TOP, and any odd members after them."""
    with tarfile.open(path, "w:gz") as opened:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{TOP}/{name}")
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
        for member in odd:
            opened.addfile(member)
    return path


def variant(name: str = "armv8.0", cpu: str = "generic", arch: str = "aarch64") -> Variant:
    """A variant that demands nothing."""
    return Variant(name=name, arch=arch, rank=10, requires=(), zig_cpu=cpu)


def plan(*variants: Variant, arch: str = "aarch64", engine: str = "llama.cpp") -> Plan:
    """A plan of which only arch, engine and variants matter."""
    settings = EngineSettings(512, 512, 512, 1, True, 1, True)
    return Plan("n", 1, "t", arch, 65536, engine, variants, "embedding", "m", "q8_0", settings, (), 0, None)


@dataclass
class Builder:
    """A runner that plays cmake and ninja: it writes ``executable`` where ninja would."""

    executable: bytes = field(default_factory=elf)
    answers: list[Completed | BaseException] = field(default_factory=list)  # first to last, then success
    calls: list[tuple[str, ...]] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
        **_: object,
    ) -> Completed:
        """See ports.Runner."""
        self.calls.append(tuple(argv))
        self.environments.append(env or {})
        answer = self.answers.pop(0) if self.answers else Completed(tuple(argv), 0, "")
        if isinstance(answer, BaseException):
            raise answer
        assert cwd is not None
        if self.is_ninja(argv) and answer.returncode == 0:
            target = cwd / "build" / "bin" / argv[-1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.executable)
        elif not self.is_ninja(argv):
            (cwd / "build").mkdir(exist_ok=True)
        if on_line:
            on_line("[1/2] Building C object a.c.o")
        return answer

    @staticmethod
    def is_ninja(argv: Sequence[str]) -> bool:
        """Whether this call is ninja's."""
        return Path(argv[0]).name == "ninja"

    def ninja_calls(self) -> int:
        """How often something was compiled."""
        return sum(self.is_ninja(call) for call in self.calls)


@pytest.fixture
def builder() -> Builder:
    """A runner for which everything goes well."""
    return Builder()
