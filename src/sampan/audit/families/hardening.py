"""What hardened, newer or older systems refuse although everything is there.

Sources: glibc NEWS 2.41 and elf/dl-load.c (executable stacks), sysdeps/*/stackinfo.h (the default without a header),
elf/dl-tls.c (static TLS), elf/dl-load.c fillin_rpath (an empty entry is the working folder), SELinux' execstack,
execmod and execheap permissions; credentials(7) and ld.so(8) for secure execution.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.kinds import is_program
from sampan.audit.loading import TARGET
from sampan.audit.numbers import number
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_EXECUTABLE = 0x1  # PF_X
_DEFAULT_EXECUTABLE = ("aarch64", "x86_64", "i686", "armv7l")  # stackinfo.h: PF_R | PF_W | PF_X


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:
    """``stack.executable``, ``text.relocations``, ``tls.static``, ``path.working-folder``, ``path.absolute``,
    ``name.non-ascii``, ``mode.set-id`` and ``kernel.minimum``.
    """
    facts, name = world.files[path], world.name(path)
    yield from _stack(path, facts, world)
    if facts.traps.text_relocations:
        yield Finding("text.relocations", "warning", name)
    yield from _static_tls(path, facts, world, closure)
    yield from _search_paths(path, facts, world)
    told = world.within_bundle(path) or posixpath.basename(path)
    if not told.isascii():
        yield Finding("name.non-ascii", "warning", name, (("name", told),))
    if path in world.set_id:
        yield Finding("mode.set-id", "warning", name)
    kernel, needs = number((world.profile.os.kernel or "").partition("-")[0]), facts.traps.kernel
    if kernel and needs > kernel:
        values = (("needs", ".".join(map(str, needs))), ("kernel", str(world.profile.os.kernel)))
        yield Finding("kernel.minimum", "error", name, values)


def _stack(path: str, facts: ElfFacts, world: World) -> Iterator[Finding]:
    """glibc since 2.41 does not open such a library late; at the start of a program it still obeys."""
    library = not is_program(path, facts)
    silent = facts.traps.stack is None and library and bool(facts.needed)
    absent = silent and world.profile.arch in _DEFAULT_EXECUTABLE
    if absent or (facts.traps.stack or 0) & _EXECUTABLE:
        refused = library and world.glibc[:2] >= world.rules.stack_refused_since
        values = (("kind", "no PT_GNU_STACK" if absent else "PT_GNU_STACK RWE"),)
        yield Finding("stack.executable", "error" if refused else "warning", world.name(path), values)


def _static_tls(path: str, facts: ElfFacts, world: World, closure: Closure) -> Iterator[Finding]:
    """Libraries of a program's start get their room then; those opened later have to fit into what is left."""
    if is_program(path, facts) or path in closure.at_start or facts.soname in world.rules.glibc_libraries:
        return
    rule = world.rules.static_tls
    roomy = world.glibc[:2] >= rule.since
    glibc = ".".join(map(str, world.glibc)) or "?"
    if facts.tls.static:
        proof = "DF_STATIC_TLS" if facts.tls.flag else f"{facts.tls.fixed} TPREL"
        values = (("size", str(facts.tls.size)), ("proof", proof), ("glibc", glibc))
        fits = roomy and facts.tls.size <= rule.reserve
        yield Finding("tls.static", "info" if fits else "warning", world.name(path), values)
    of_target = [name for name in facts.needed if name in rule.users and closure.served.get((path, name)) == TARGET]
    if of_target and not roomy:
        values = (("size", "?"), ("proof", f"{world.profile.name}:{of_target[0]}"), ("glibc", glibc))
        yield Finding("tls.static", "warning", world.name(path), values)


def _search_paths(path: str, facts: ElfFacts, world: World) -> Iterator[Finding]:
    entries = (*facts.rpath, *facts.runpath)
    working = [entry or "(empty)" for entry in entries if not entry.startswith(("/", "$"))]
    if working:
        severity = "error" if world.bundle is not None else "warning"  # it runs all the same, by whoever's library
        yield Finding("path.working-folder", severity, world.name(path), (("entries", ", ".join(working)),))
    absolute = [entry for entry in entries if entry.startswith("/")]
    if absolute and world.bundle is None:
        built = any(entry.startswith(world.rules.build_paths) for entry in absolute)
        values = (("entries", ", ".join(absolute)),)
        yield Finding("path.absolute", "warning" if built else "info", world.name(path), values)
