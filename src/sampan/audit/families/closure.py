"""Libraries and symbols that nothing provides, or that something else provides first."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.families.ceilings import too_new_for_target
from sampan.audit.folders import search_folders
from sampan.audit.kinds import is_musl, is_program
from sampan.audit.loading import TARGET, Scope
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_SHOWN = 6


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:
    """``closure.missing``, ``closure.unstated``, ``closure.symbols``, ``closure.duplicate``, ``closure.contested``,
    ``closure.unreached`` and ``closure.dlopen``.
    """
    facts = world.files[path]
    yield from _missing(path, facts, world, closure)
    yield from _symbols(path, facts, world, closure)
    yield from _duplicates(path, facts, world, closure)
    if world.bundle is None:
        yield from _beside_the_target(path, facts, world, closure)
    yield from _opened_later(path, facts, world)


def _missing(path: str, facts: ElfFacts, world: World, closure: Closure) -> Iterator[Finding]:
    """Every library that is missing, and where it was looked for, and those of which nobody knows.

    Of musl's own ``loader.musl`` speaks.
    """
    missing = [name for name in closure.missing(path, facts.needed) if "/" not in name and not is_musl(name)]
    if missing:
        folders = [world.name(folder) for folder in search_folders(world, path)]
        places = [*folders, *([] if world.private else [world.profile.name])]
        values = (("libraries", ", ".join(missing)), ("searched", ", ".join(dict.fromkeys(places)) or "-"))
        yield Finding("closure.missing", "error", world.name(path), values)
    unstated = [
        name for name in facts.needed if name in world.unstated and closure.served.get((path, name)) == TARGET
    ]
    if unstated:
        values = (("libraries", ", ".join(unstated)), ("target", world.profile.name))
        yield Finding("closure.unstated", "warning", world.name(path), values)


def _symbols(path: str, facts: ElfFacts, world: World, closure: Closure) -> Iterator[Finding]:
    """Undefined symbols that no file of any scope gives.

    Where some of the scope is not known, only those are judged that are bound to a version of a known library.
    """
    scopes = closure.scopes.get(path, ())
    bound = {need.version: need.library for need in facts.needs}
    lacking = []
    for name, version in facts.symbols.wanted:
        server = closure.served.get((path, bound.get(version, "")), "")
        known = server not in ("", TARGET, None)
        if known and version not in world.files[str(server)].provides:
            continue  # the whole version is missing: the ceilings say so
        if version and not known:
            continue
        judged = [scope for scope in scopes if scope.complete or known]
        if judged and len(judged) == len(scopes) and not any(_given(name, version, scope, world) for scope in scopes):
            lacking.append(f"{name}@{version} ({bound[version]})" if known else name)
    if lacking:
        more = f" +{len(lacking) - _SHOWN}" if lacking[_SHOWN:] else ""
        values = (("symbols", ", ".join(lacking[:_SHOWN]) + more), ("count", str(len(lacking))))
        yield Finding("closure.symbols", "error", world.name(path), values)


def _given(name: str, version: str, scope: Scope, world: World) -> bool:
    """As glibc elf/dl-lookup.c binds: a definition without a version serves all, a wish without one takes any."""
    for file in scope.files:
        symbols = world.files[file].symbols
        if not symbols.complete:
            return True  # unknown is not missing
        versions = symbols.given.get(name)
        if versions and (not version or version in versions or "" in versions):
            return True
    return False


def _duplicates(path: str, facts: ElfFacts, world: World, closure: Closure) -> Iterator[Finding]:
    """One name, different libraries in one process: whichever comes first serves all that ask later."""
    for name in facts.needed:
        mine = closure.served.get((path, name))
        others = closure.rivals.get(name, frozenset()) - {mine}
        if mine and mine != TARGET and others:
            values = (
                ("library", name),
                ("own", world.name(mine)),
                ("other", ", ".join(sorted(map(world.name, others)))),
            )
            yield Finding("closure.duplicate", "warning", world.name(path), values)
            return


def _beside_the_target(path: str, facts: ElfFacts, world: World, closure: Closure) -> Iterator[Finding]:
    """Libraries that the target has as well: its own may be in the process already, or be all that is found."""
    on_target = world.on_target
    for name in facts.needed:
        server, here = closure.served.get((path, name)), closure.carried.get(name, path)
        if server == TARGET and here != path:
            unreached = (("library", name), ("own", world.name(here)))
            yield Finding("closure.unreached", "info", world.name(path), unreached)
        elif server and server != TARGET and name in on_target and not is_program(path, facts):
            late = too_new_for_target(facts, name, world)
            if late:
                values = (
                    ("library", name),
                    ("own", world.name(server)),
                    ("highest", late),
                    ("target", world.profile.name),
                )
                yield Finding("closure.contested", "warning", world.name(path), values)


def _opened_later(path: str, facts: ElfFacts, world: World) -> Iterator[Finding]:
    """Files beside this one whose names stand in its text: it may open them when it runs, so they must travel too."""
    if not facts.texts or facts.soname in world.rules.glibc_libraries:
        return
    folder = posixpath.dirname(path)
    names = {name for name in facts.texts if world.find(f"{folder}/{name}")}
    plugins = tuple(prefix for prefix in world.rules.plugins if prefix in facts.texts)
    if plugins:
        beside = (file for file in (*world.files, *world.aliases) if posixpath.dirname(file) == folder)
        names |= {name for name in map(posixpath.basename, beside) if name.startswith(plugins)}
    names -= {posixpath.basename(path), facts.soname or "", *facts.needed}
    if names:
        yield Finding("closure.dlopen", "info", world.name(path), (("libraries", ", ".join(sorted(names))),))
