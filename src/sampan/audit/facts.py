"""What one ELF file says of itself: pure values, small enough to travel between processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from sampan.audit.gpu.facts import GpuCode
from sampan.audit.instructions.facts import CodeFacts


@dataclass(frozen=True)
class Load:
    """One PT_LOAD segment with memory; bytes."""

    offset: int
    vaddr: int
    align: int
    file_size: int = 0
    executable: bool = False


@dataclass(frozen=True)
class VersionNeed:
    """One version wanted of one library, and the undefined symbols bound to it. ``weak``: the loader forgives."""

    library: str
    version: str
    weak: bool
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class Symbols:
    """``wanted``: (name, version) of every undefined symbol that is not weak; ``given``: the versions of each name
    that others can bind to. The version ``""`` means none. ``complete``: False where a table is too large to be read.
    """

    wanted: tuple[tuple[str, str], ...] = ()
    given: dict[str, tuple[str, ...]] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True)
class Tls:
    """Thread-local storage: the segment's ``size`` in bytes; ``flag``: DF_STATIC_TLS; ``fixed``: relocations that
    bind the file's own variables at a fixed distance from the thread pointer (initial-exec model).
    """

    size: int = 0
    flag: bool = False
    fixed: int = 0

    @property
    def static(self) -> bool:
        """Whether the loader has to find room for it in the block that every thread has from the start."""
        return self.size > 0 and (self.flag or self.fixed > 0)


@dataclass(frozen=True)
class Traps:
    """What hardened or newer systems refuse. ``stack``: the flags of PT_GNU_STACK, None where there is none;
    ``text_relocations``: code is written to; ``kernel``: the lowest that the file says it needs.
    """

    stack: int | None = None
    text_relocations: bool = False
    kernel: tuple[int, ...] = ()


@dataclass(frozen=True)
class PageTrap:
    """An allocator or engine with a page size compiled in; ``page`` in bytes, None where that cannot be read."""

    name: str
    page: int | None


@dataclass(frozen=True)
class ElfFacts:
    """``kind``: executable (fixed address), shared (libraries and position-independent programs), relocatable, core
    or other. ``machine`` and ``osabi`` are the names of the ELF specification, or the number as text.
    ``rpath`` counts only where there is no ``runpath``, as for the loader; an empty entry is the working folder.
    ``texts``: names of libraries that stand in the file's data.
    """

    bits: int
    little_endian: bool
    machine: str
    osabi: str
    kind: str
    flags: int = 0
    loads: tuple[Load, ...] = ()
    interpreter: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    pie: bool = False
    needs: tuple[VersionNeed, ...] = ()
    provides: frozenset[str] = frozenset()
    symbols: Symbols = Symbols()
    tls: Tls = Tls()
    traps: Traps = Traps()
    page_traps: tuple[PageTrap, ...] = ()
    texts: frozenset[str] = frozenset()
    gpu: GpuCode | None = None
    code: CodeFacts | None = None


@dataclass(frozen=True)
class Damaged:
    """A file that begins like ELF and cannot be read as such; ``reason`` is in English, for people."""

    reason: str
