"""One module a family of rules. To add one, write a judge, a reader if contents are needed, and add both below.

**A judge** ``judge(path, world, closure) -> Iterator[Finding]`` says what is wrong with one sound ELF file of the
target's architecture. It is pure: all that it may know is in ``world`` (``world.files[path]`` are the file's facts,
``world.profile`` the target, ``world.rules`` the data) and ``closure`` (which file serves which NEEDED entry). It
names the file by ``world.name(path)``. Codes never change meaning; each has ``finding.CODE`` and ``finding.CODE.fix``
in the catalogue (``data/messages/*.toml``) and an explanation in ``data/findings/*.toml``, from which
``docs/findings*.md`` are generated (see ``tests/unit/audit/test_audit_docs.py``).

**A reader** ``read(path, facts) -> ElfFacts`` looks into the contents of one file and gives the facts with its own
field filled in (``dataclasses.replace``). It runs in a worker process and its outcome is kept in a cache under the
hash of the file's bytes and of the audit's own sources and data, so it may depend on nothing else: not on the path,
the target or the time. It raises OSError, and ``Broken`` where the contents contradict themselves (then the file is
``elf.damaged``); work and memory are bounded whatever the bytes say. Its field has a default, and consists of frozen
dataclasses, str, int, float, bool, None, tuples, frozensets of str and dicts by str: it travels as JSON.

Readers run for the files to be judged only. What is wanted of libraries that merely serve them (versions, exported
symbols) belongs into ``elf.read``, which runs for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.families import ceilings, gpu, hardening, instructions, loader, pages
from sampan.audit.families import closure as libraries
from sampan.audit.gpu.read import read as gpu_code
from sampan.audit.instructions.census import read as code
from sampan.audit.texts import read as texts
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

Judge = Callable[[str, World, Closure], Iterator[Finding]]
Reader = Callable[[Path, ElfFacts], ElfFacts]

JUDGES: tuple[Judge, ...] = (
    loader.judge,
    ceilings.judge,
    libraries.judge,
    pages.judge,
    hardening.judge,
    gpu.judge,
    instructions.judge,
)
READERS: tuple[Reader, ...] = (texts, gpu_code, code)
