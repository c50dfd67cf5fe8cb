"""What kind of file one is: questions that its facts alone answer."""

from __future__ import annotations

import posixpath

from sampan.audit.architectures import ArchRules
from sampan.audit.facts import ElfFacts


def fits(facts: ElfFacts, arch: ArchRules) -> bool:
    """Whether the loader of that architecture would take the file at all."""
    same = facts.machine == arch.machine and facts.bits == arch.bits and facts.little_endian == arch.little_endian
    return same and (arch.abi is None or facts.flags & arch.abi.mask == arch.abi.value)


def is_program(path: str, facts: ElfFacts) -> bool:
    """Some libraries have an interpreter too (libc.so.6 prints its version), but are not started by it."""
    if facts.kind == "executable" or facts.pie:
        return True
    return facts.interpreter is not None and facts.soname is None and ".so" not in posixpath.basename(path)


def is_extension(facts: ElfFacts) -> bool:
    """Whether the file is a module that Python loads: it wants Python's own functions."""
    return any(name.startswith(("Py", "_Py")) for name, _ in facts.symbols.wanted)


def is_musl(library: str) -> bool:
    """Whether the name is that of musl's C library: glibc's is libc.so.6 everywhere."""
    return library.startswith("libc.musl-") or library == "libc.so"
