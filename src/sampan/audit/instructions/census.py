"""One file in, CodeFacts out. Nothing is executed, and the target plays no part."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sampan.audit.facts import ElfFacts
from sampan.audit.instructions.facts import CodeFacts

_ARCHITECTURES = {"EM_AARCH64": "aarch64", "EM_X86_64": "x86_64", "EM_LOONGARCH": "loongarch64"}


def read(path: Path, facts: ElfFacts) -> ElfFacts:
    """The audit's reader: fills ``code`` in. Raises OSError."""
    arch = _ARCHITECTURES.get(facts.machine)
    if arch is None or facts.bits != 64 or not facts.little_endian or facts.kind not in ("executable", "shared"):
        return facts
    program = facts.kind == "executable" or facts.pie or (facts.interpreter is not None and facts.soname is None)
    return replace(facts, code=census(path, arch, program=program))


def census(path: Path, arch: str, *, program: bool) -> CodeFacts:
    """Every CPU feature that the code of a sound 64-bit ELF file uses beyond the architecture's floor, by class.

    ``program``: the kernel starts it, so its entry counts as a start. Raises OSError.
    """
    from sampan.audit.instructions.binary import Binary  # noqa: PLC0415  (numpy: 0.1 s that `--help` need not pay)

    with path.open("rb") as stream:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        binary = Binary(data)
        try:
            return _readers()[arch](binary, program)
        finally:
            binary.close()
            with suppress(BufferError):  # an error on its way out may hold views of it: then it closes with them
                data.close()


def _readers() -> dict[str, Callable[..., CodeFacts]]:
    from sampan.audit.instructions import words_census, x86_census  # noqa: PLC0415

    return {
        "aarch64": partial(words_census.read, "aarch64"),
        "loongarch64": partial(words_census.read, "loongarch64"),
        "x86_64": x86_census.read,
    }
