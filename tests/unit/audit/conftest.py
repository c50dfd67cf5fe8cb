"""Small ELF files, written field by field, so that each says exactly what a test wants it to say."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, TargetProfile

AARCH64, X86_64, ARM = 183, 62, 40
EXEC, DYN = 2, 3
_HEADER, _PHDR, _SYM = 64, 56, 24
_DF_1_PIE = 0x08000000


@dataclass
class Elf:
    """A 64-bit ELF file. ``needs``: versions and their symbols by library; ``segments``: (align, vaddr - offset).

    ``exports``: version (of ``provides``, or "") by name; ``undefined``: names without a version; ``stack``: the
    flags of PT_GNU_STACK, None for no such header; ``tls``: bytes; ``fixed``: initial-exec relocations; ``data``:
    what the file ends with; ``executable``: the segments are code.
    """

    machine: int = AARCH64
    kind: int = DYN
    little: bool = True
    bits: int = 64
    osabi: int = 0
    interpreter: str | None = None
    soname: str | None = None
    needed: Sequence[str] = ()
    rpath: str | None = None
    runpath: str | None = None
    pie: bool = False
    needs: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    weak: bool = False
    provides: Sequence[str] = ()
    segments: Sequence[tuple[int, int]] = ((65536, 0),)
    dynamic: bool = True
    flags: int = 0
    exports: Mapping[str, str] = field(default_factory=dict)
    undefined: Sequence[str] = ()
    stack: int | None = 6
    tls: int = 0
    static_tls: bool = False
    fixed: int = 0
    textrel: bool = False
    kernel: tuple[int, int, int] | None = None
    data: bytes = b""
    executable: bool = False

    def __post_init__(self) -> None:
        self.strings = b"\0"

    def build(self) -> bytes:
        """The file. One PT_LOAD maps all of it at address 0, so that offsets are addresses; others map nothing."""
        self.strings = b"\0"
        more = (self.stack is not None, self.tls > 0, self.kernel is not None)
        count = len(self.segments) + self.dynamic + (self.interpreter is not None) + sum(more)
        base = _HEADER + _PHDR * count
        body, tags, interpreter = self._body(base)
        end = base + len(body)
        dynamic = b"".join(self._pack("qQ", *tag) for tag in [*tags, (0, 0)]) if self.dynamic else b""
        note = self._pack("IIII", 4, 16, 1, 0x554E47 if self.little else 0x474E5500)
        note += self._pack("IIII", 0, *(self.kernel or (0, 0, 0)))
        size = end + len(dynamic) + len(note) + len(self.data)
        headers = b"".join(self._load(align, skew, size, first) for first, (align, skew) in self._numbered())
        if self.interpreter is not None:
            length = len(self.interpreter) + 1
            headers += self._pack("IIQQQQQQ", 3, 4, interpreter, interpreter, interpreter, length, length, 1)
        if self.dynamic:
            headers += self._pack("IIQQQQQQ", 2, 6, end, end, end, len(dynamic), len(dynamic), 8)
        if self.stack is not None:
            headers += self._pack("IIQQQQQQ", 0x6474E551, self.stack, 0, 0, 0, 0, 0, 16)
        if self.tls:
            headers += self._pack("IIQQQQQQ", 7, 4, base, base, base, 0, self.tls, 8)
        if self.kernel is not None:
            start = end + len(dynamic)
            headers += self._pack("IIQQQQQQ", 4, 4, start, start, start, len(note), len(note), 4)
        return self._header(count) + headers + body + dynamic + note + self.data

    def _numbered(self) -> list[tuple[bool, tuple[int, int]]]:
        return [(index == 0, segment) for index, segment in enumerate(self.segments)]

    def _load(self, align: int, skew: int, size: int, first: bool) -> bytes:
        filled = size if first else 0
        vaddr = skew if first else 0x40000000 + skew
        return self._pack("IIQQQQQQ", 1, 5 if self.executable else 4, 0, vaddr, vaddr, filled, filled or 16, align)

    def _pack(self, layout: str, *values: int) -> bytes:
        return struct.pack(("<" if self.little else ">") + layout, *values)

    def _header(self, count: int) -> bytes:
        ident = b"\x7fELF" + bytes([2 if self.bits == 64 else 1, 1 if self.little else 2, 1, self.osabi]) + bytes(8)
        if self.bits == 32:
            return ident + self._pack(
                "HHIIIIIHHHHHH", self.kind, self.machine, 1, 0, 52, 0, self.flags, 52, 32, 0, 40, 0, 0
            )
        fields = (self.kind, self.machine, 1, 0, 64, 0, self.flags, 64, 56, count, 64, 0, 0)
        return ident + self._pack("HHIQQQIHHHHHH", *fields)

    def _string(self, text: str) -> int:
        index = len(self.strings)
        self.strings += text.encode() + b"\0"
        return index

    def _body(self, base: int) -> tuple[bytes, list[tuple[int, int]], int]:
        symbols, versym, verneed = self._wanted()
        verdef = self._given()
        tags = [(1, self._string(name)) for name in self.needed]
        tags += [
            (tag, self._string(text))
            for tag, text in ((14, self.soname), (15, self.rpath), (29, self.runpath))
            if text
        ]
        tags += [(0x6FFFFFFB, _DF_1_PIE)] if self.pie else []
        tags += [(30, 0x4 * self.textrel | 0x10 * self.static_tls)] if self.textrel or self.static_tls else []
        first = len(symbols) // _SYM
        hashed = self._pack("IIIIQI", 1, first, 1, 0, 0, first if self.exports else 0)
        for last, (name, version) in _last(self.exports):
            symbols += self._pack("IBBHQQ", self._string(name), 0x12, 0, 1, base, 8)
            versym += self._pack("H", self.provides.index(version) + 2 if version else 1)
            hashed += self._pack("I", last)
        fixed = self._pack("QQQ", base, {AARCH64: 1030, X86_64: 18}.get(self.machine, 0), 0) * self.fixed
        tags += [(8, len(fixed))] if fixed else []
        body = b""
        parts = (
            (6, symbols),
            (0x6FFFFFF0, versym),
            (0x6FFFFFFE, verneed),
            (0x6FFFFFFC, verdef),
            (0x6FFFFEF5, hashed),
            (7, fixed),
        )
        for tag, part in parts:
            if part:
                tags.append((tag, base + len(body)))
                body += part
        tags += [(0x6FFFFFFF, len(self.needs)), (0x6FFFFFFD, len(self.provides) + 1 if self.provides else 0)]
        interpreter = base + len(body)
        body += (self.interpreter or "").encode() + b"\0"
        tags += [(5, base + len(body)), (10, len(self.strings))]
        return body + self.strings, tags, interpreter

    def _wanted(self) -> tuple[bytes, bytes, bytes]:
        symbols, versym, verneed, index = bytes(_SYM), self._pack("H", 0), b"", 2 + len(self.provides)
        for last, (library, versions) in _last(self.needs):
            aux = b""
            for end, (version, names) in _last(versions):
                following = 0 if end else 16
                aux += self._pack("IHHII", 0, 2 if self.weak else 0, index, self._string(version), following)
                for name in names:
                    symbols += self._pack("IBBHQQ", self._string(name), 0x12, 0, 0, 0, 0)
                    versym += self._pack("H", index)
                index += 1
            following = 0 if last else 16 + len(aux)
            verneed += self._pack("HHIII", 1, len(versions), self._string(library), 16, following) + aux
        for name in self.undefined:
            symbols += self._pack("IBBHQQ", self._string(name), 0x12, 0, 0, 0, 0)
            versym += self._pack("H", 1)
        return symbols, versym, verneed

    def _given(self) -> bytes:
        if not self.provides:
            return b""
        names = [("base", 1), *((name, 0) for name in self.provides)]
        return b"".join(
            self._pack("HHHHIII", 1, flags, index + 1, 1, 0, 20, 0 if index == len(names) - 1 else 28)
            + self._pack("II", self._string(name), 0)
            for index, (name, flags) in enumerate(names)
        )


T = TypeVar("T")


def _last(items: Mapping[str, T]) -> list[tuple[bool, tuple[str, T]]]:
    """Every item, and whether it is the last one."""
    return [(index == len(items) - 1, pair) for index, pair in enumerate(items.items())]


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Write a file below the test's folder."""

    def write(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def make() -> type[Elf]:
    """The maker of ELF files."""
    return Elf


@pytest.fixture
def kylin() -> TargetProfile:
    """glibc 2.28 with GCC 7.3's libstdc++, 64 KiB pages."""
    return TargetProfile(
        "kylin", "aarch64", OsFacts("kylin", "Kylin"), CpuFacts("any"), 65536, LibcFacts("2.28", "3.4.24", "1.3.11")
    )
