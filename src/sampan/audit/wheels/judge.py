"""Findings on a wheel as a whole: its tag, machine, RECORD, scripts, Python."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from packaging.tags import cpython_tags

from sampan.audit import numbers as known
from sampan.audit.facts import ElfFacts
from sampan.audit.kinds import fits
from sampan.audit.wheels import policies
from sampan.audit.wheels.policies import Tag
from sampan.audit.wheels.read import Wheel
from sampan.audit.world import World
from sampan.spec import layout
from sampan.spec.artefacts import Finding

_SHOWN = 4
_PORTABLE = re.compile(r"#!\s*(?:python\w*\b|/bin/(?:sh|bash)\b|/usr/bin/env\b)")


def judge(wheel: Wheel, shown: str, files: Sequence[str], world: World) -> Iterator[Finding]:
    """``wheel.*``. ``files``: the paths of the sound ELF files in it; ``shown``: the name to report it by."""
    yield from _record(wheel, shown)
    yield from _scripts(wheel, shown)
    yield from _python(wheel, shown)
    tags = [policies.parse(platform) for platform in wheel.platforms]
    yield from _machine(tags, shown, files, world)
    yield from _tag(tags, shown, files, world)


def _record(wheel: Wheel, shown: str) -> Iterator[Finding]:
    faults = wheel.record
    kinds = {
        "absent": (faults.absent,) if faults.absent else (),
        "changed": faults.changed,
        "missing": faults.missing,
        "extra": faults.extra,
        "unhashed": faults.unhashed,
    }
    for kind, names in kinds.items():
        if names:
            values = (("kind", kind), ("count", str(len(names))), ("names", _some(names)))
            yield Finding("wheel.record", "warning" if kind in ("extra", "unhashed") else "error", shown, values)


def _scripts(wheel: Wheel, shown: str) -> Iterator[Finding]:
    """An installer rewrites ``#!python`` only."""
    for name, line in sorted(wheel.scripts.items()):
        if line.startswith("#!") and not _PORTABLE.match(line):
            yield Finding("wheel.shebang", "warning", f"{shown}!{name}", (("line", line[:120]),))


def _python(wheel: Wheel, shown: str) -> Iterator[Finding]:
    """Whether the private runtime's Python would take it."""
    version = known.number(layout.PYTHON)
    taken = {(tag.interpreter, tag.abi) for tag in cpython_tags(version, platforms=["any"])}
    pure = {f"py{version[0]}", *(f"py{version[0]}{minor}" for minor in range(version[1] + 1))}
    if wheel.pythons and not any(pair in taken or (pair[0] in pure and pair[1] == "none") for pair in wheel.pythons):
        tags = ", ".join(dict.fromkeys("-".join(pair) for pair in wheel.pythons))
        yield Finding("wheel.python", "info", shown, (("tags", tags), ("python", layout.PYTHON)))


def _machine(tags: Sequence[Tag], shown: str, files: Sequence[str], world: World) -> Iterator[Finding]:
    """Files for another processor than the name says; what the target is does not matter here."""
    wanted = {tag.arch for tag in tags if tag.arch in world.rules.arch}
    if not wanted:
        return
    foreign = [
        path
        for path in files
        if world.files[path].kind in ("executable", "shared")
        and not any(fits(world.files[path], world.rules.arch[arch]) for arch in wanted)
        and world.files[path].machine != "EM_CUDA"
    ]
    if foreign:
        machines = ", ".join(sorted({world.files[path].machine for path in foreign}))
        names = _some([_inner(path, world) for path in foreign])
        values = (("wanted", ", ".join(sorted(wanted))), ("found", machines), ("names", names))
        yield Finding("wheel.machine", "error", shown, values)


def _tag(tags: Sequence[Tag], shown: str, files: Sequence[str], world: World) -> Iterator[Finding]:
    """The name's promise against the contents, and whether the target's C library is the promised one."""
    impossible = [tag.text for tag in tags if not tag.possible]
    if impossible and len(impossible) == len(tags):
        yield Finding("wheel.tag", "error", shown, _values("impossible", ", ".join(impossible), "-", "-"))
        return
    if tags and all(tag.text.startswith("musllinux_") for tag in tags):
        yield Finding("wheel.musl", "error", shown, (("tag", ", ".join(tag.text for tag in tags)),))
        return
    if not files:
        return
    for tag in tags:
        if tag.text == "any":
            yield Finding("wheel.tag", "warning", shown, _values("any", tag.text, "-", _inner(files[0], world)))
        elif tag.text.startswith("linux_"):
            policy, reason = _floor(tag.arch, files, world)
            yield Finding("wheel.tag", "warning", shown, _values("none", tag.text, _spelt(policy, tag.arch), reason))
    claimed = [tag for tag in tags if tag.policy and tag.possible]
    if claimed:
        yield from _promise(min(claimed, key=lambda tag: tag.policy or (0, 0)), shown, files, world)


def _promise(tag: Tag, shown: str, files: Sequence[str], world: World) -> Iterator[Finding]:
    """The lowest of its tags is the promise: pip takes the wheel wherever one of them fits."""
    policy, reason = _floor(tag.arch, files, world)
    if policy is None or tag.policy is None or policy > tag.policy:
        yield Finding("wheel.tag", "warning", shown, _values("too-low", tag.text, _spelt(policy, tag.arch), reason))


def _values(kind: str, tag: str, real: str, reason: str) -> tuple[tuple[str, str], ...]:
    return ("kind", kind), ("tag", tag), ("real", real), ("reason", reason or "-")


def _spelt(policy: tuple[int, int] | None, arch: str) -> str:
    return f"manylinux_{policy[0]}_{policy[1]}_{arch}" if policy else f"linux_{arch}"


def _floor(arch: str, files: Sequence[str], world: World) -> tuple[tuple[int, int] | None, str]:
    """The lowest policy of all files, and what forces it in which file."""
    lowest, why = policies.load().first.get(arch, (2, 5)), ""
    own = {name for path in files for name in (posixpath.basename(path), world.files[path].soname)}
    for path in files:
        policy, reason = policies.floor(_system_needs(world.files[path], own), arch)
        if policy is None or policy > lowest:
            why = f"{_symbol(world.files[path], reason)} ({_inner(path, world)})"
            if policy is None:
                return None, why
            lowest = policy
    return lowest, why


def _system_needs(facts: ElfFacts, own: set[str | None]) -> Iterator[tuple[str, str]]:
    """(library, version) that the wheel does not bring itself."""
    yield from ((name, "") for name in facts.needed if name not in own)
    yield from ((need.library, need.version) for need in facts.needs if need.library not in own and not need.weak)


def _symbol(facts: ElfFacts, reason: str) -> str:
    """``pow@GLIBC_2.29`` for ``GLIBC_2.29``, where the file names a symbol that wants it."""
    version = reason.rpartition(" ")[2]
    found = (need.symbols[0] for need in facts.needs if need.version == version and need.symbols)
    symbol = next(found, "")
    return f"{symbol}@{version}" if symbol else reason


def _inner(path: str, world: World) -> str:
    """The file's name inside of its archive."""
    return world.name(path).rpartition("!")[2]


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" +{rest}" if rest > 0 else "")
