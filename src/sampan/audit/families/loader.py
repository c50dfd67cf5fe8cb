"""Who starts a program, and what of the machine outside a bundle it would reach for."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from fnmatch import fnmatchcase

from sampan.audit import paths
from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.kinds import is_musl, is_program
from sampan.audit.world import World
from sampan.spec import layout
from sampan.spec.artefacts import Finding


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:
    """``loader.interpreter``, ``loader.musl`` and ``outside.bundle``."""
    facts = world.files[path]
    if facts.interpreter is not None and is_program(path, facts):
        inside = world.within_bundle(path)
        if inside is None:
            yield from _on_target(path, facts.interpreter, world)
        else:
            yield from _in_bundle(path, inside, facts.interpreter, world)
    else:
        yield from _musl(path, facts, world, closure)
    if world.bundle is not None:
        yield from _reaching_out(path, facts, world)


def _musl(path: str, facts: ElfFacts, world: World, closure: Closure) -> Iterator[Finding]:
    """A library built for musl: its C library is not there, and beside glibc's it could not be."""
    missing = [name for name in closure.missing(path, facts.needed) if is_musl(name)]
    if missing:
        yield Finding("loader.musl", "error", world.name(path), (("libraries", ", ".join(missing)),))


def _on_target(path: str, interpreter: str, world: World) -> Iterator[Finding]:
    """The kernel reads the path literally; a distribution has its own loader there and no other."""
    old = world.arch.old_world
    expected = old.loader if old and world.old_world else world.arch.loader
    if posixpath.normpath(interpreter) not in _same_place(expected):
        kind = "musl" if posixpath.basename(interpreter) == posixpath.basename(world.arch.musl) else "unknown"
        values = (("interpreter", interpreter), ("expected", expected), ("kind", kind))
        yield Finding("loader.interpreter", "error", world.name(path), values)


def _same_place(loader: str) -> tuple[str, ...]:
    """``/lib`` and ``/lib64`` are links into ``/usr`` on merged systems, so one loader has two spellings."""
    return loader, f"/usr{loader}"


def _in_bundle(path: str, inside: str, interpreter: str, world: World) -> Iterator[Finding]:
    rules = world.rules
    if inside.startswith(f"{rules.runtime}/{layout.LIBRARIES}/"):
        return
    if not any(fnmatchcase(inside, f"{rules.runtime}/{pattern}") for pattern in rules.runtime_programs):
        yield Finding(
            "outside.bundle", "error", world.name(path), (("outside", interpreter), ("kind", "interpreter"))
        )
        return
    private = world.loader
    if private is None or world.files[private].soname != posixpath.basename(interpreter):
        expected = f"{rules.runtime}/{layout.LOADER}"
        values = (("interpreter", interpreter), ("expected", expected), ("kind", "absent"))
        yield Finding("loader.interpreter", "error", world.name(path), values)


def _reaching_out(path: str, facts: ElfFacts, world: World) -> Iterator[Finding]:
    """A NEEDED with a slash is opened as it stands; a fixed search path lets the host's library win."""
    for name in facts.needed:
        if "/" in name:
            yield Finding("outside.bundle", "error", world.name(path), (("outside", name), ("kind", "needed")))
    for entry in (*facts.rpath, *facts.runpath):
        if not entry.startswith(("/", "$")):  # hangs on the working folder: path.working-folder
            continue
        folder = paths.expand(entry, path, world.arch.lib[1], world.profile.arch)
        if not f"{folder}/".startswith(f"{world.bundle}/"):
            yield Finding(
                "outside.bundle", "warning", world.name(path), (("outside", entry), ("kind", "search path"))
            )
