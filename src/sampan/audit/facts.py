"""What one ELF file says of itself: pure values, small enough to travel between processes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """One PT_LOAD segment with memory; bytes."""

    offset: int
    vaddr: int
    align: int


@dataclass(frozen=True)
class VersionNeed:
    """One version wanted of one library, and the undefined symbols bound to it. ``weak``: the loader forgives."""

    library: str
    version: str
    weak: bool
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class ElfFacts:
    """``kind``: executable (fixed address), shared (libraries and position-independent programs), relocatable, core
    or other. ``machine`` and ``osabi`` are the names of the ELF specification, or the number as text.
    ``rpath`` counts only where there is no ``runpath``, as for the loader.
    """

    bits: int
    little_endian: bool
    machine: str
    osabi: str
    kind: str
    loads: tuple[Load, ...] = ()
    interpreter: str | None = None
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    pie: bool = False
    needs: tuple[VersionNeed, ...] = ()
    provides: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Damaged:
    """A file that begins like ELF and cannot be read as such; ``reason`` is in English, for people."""

    reason: str
