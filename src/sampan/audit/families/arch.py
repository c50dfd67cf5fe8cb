"""Class, byte order, machine and ABI against the target and against the file's own name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from sampan.audit.architectures import OldWorld
from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.kinds import fits, is_musl
from sampan.audit.numbers import split_version
from sampan.audit.world import World
from sampan.spec.artefacts import Finding

_ABIS = ("ELFOSABI_SYSV", "ELFOSABI_LINUX")  # all that Linux and glibc's loader take
_MODULE = re.compile(r".+\.(?:cpython|pypy)[\w-]*?-(?P<arch>[a-z0-9_]+)-linux-(?P<libc>gnu|musl)\w*\.so")


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:  # noqa: ARG001
    """``arch.machine``, ``arch.abi``, ``arch.world``, ``arch.module-name``. With one of the first three no other rule
    applies.

    An object file or core dump of another architecture is never run, so it is a warning.
    """
    facts = world.files[path]
    if not fits(facts, world.arch) or facts.osabi not in _ABIS:
        severity = "error" if facts.kind in ("executable", "shared") else "warning"
        same = facts.machine == world.arch.machine and facts.bits == world.arch.bits and facts.osabi in _ABIS
        code = "arch.abi" if same and facts.little_endian == world.arch.little_endian else "arch.machine"
        values = (("found", describe(facts, world)), ("wanted", _wanted(world)))
        yield Finding(code, severity, world.name(path), values)
    elif world.arch.old_world and world.bundle is None:
        yield from _world(path, facts, world, world.arch.old_world)
    yield from _module_name(path, facts, world)


def _wanted(world: World) -> str:
    abi = world.arch.abi
    return world.profile.arch + (f", {abi.names[abi.value]}" if abi and abi.value in abi.names else "")


def describe(facts: ElfFacts, world: World) -> str:
    """Such as ``EM_ARM, 32-bit, little-endian``, and the ABI where the header's flags tell it."""
    order = "little-endian" if facts.little_endian else "big-endian"
    osabi = "" if facts.osabi in _ABIS else f", {facts.osabi}"
    abi = next((one.abi for one in world.rules.arch.values() if one.machine == facts.machine and one.abi), None)
    name = abi.names.get(facts.flags & abi.mask, "") if abi else ""
    return f"{facts.machine}, {facts.bits}-bit, {order}{osabi}{', ' + name if name else ''}"


def _world(path: str, facts: ElfFacts, world: World, old: OldWorld) -> Iterator[Finding]:
    """Files tell their world by their loader, or by the oldest glibc version that they ask for."""
    versions = (split_version(need.version) for need in facts.needs)
    asked = [number for family, number in versions if family == "GLIBC" and number]
    if facts.interpreter:
        is_old = posixpath.normpath(facts.interpreter) == old.loader
    elif asked:
        is_old = min(asked) < old.below
    else:
        return
    if is_old != world.old_world and world.profile.libc.glibc:
        names = {True: "old world (ABI 1.0)", False: "new world (ABI 2.0)"}
        proof = facts.interpreter or f"GLIBC_{'.'.join(map(str, min(asked)))}"
        values = (("found", names[is_old]), ("wanted", names[world.old_world]), ("proof", proof))
        yield Finding("arch.world", "error", world.name(path), values)


def _module_name(path: str, facts: ElfFacts, world: World) -> Iterator[Finding]:
    """Python looks for its own suffix only, so a module of another name is as good as absent."""
    match = _MODULE.fullmatch(posixpath.basename(path))
    if not match:
        return
    named = next((one for one in world.rules.arch.values() if match["arch"] in one.triplets), None)
    wrong = named is not None and (named.machine, named.bits) != (facts.machine, facts.bits)
    if wrong or (match["libc"] == "musl" and not any(map(is_musl, facts.needed))):
        values = (("named", f"{match['arch']}-linux-{match['libc']}"), ("found", describe(facts, world)))
        yield Finding("arch.module-name", "error", world.name(path), values)
