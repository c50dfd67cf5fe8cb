"""Findings on a wheel as a whole: its tag, machine, RECORD, scripts, Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.tags import cpython_tags

from sampan.audit import numbers as known
from sampan.audit.kinds import fits
from sampan.audit.wheels import policies, promises
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
    yield from promises.judge(tags, shown, files, world)


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
        names = _some([promises.inner(path, world) for path in foreign])
        values = (("wanted", ", ".join(sorted(wanted))), ("found", machines), ("names", names))
        yield Finding("wheel.machine", "error", shown, values)


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" +{rest}" if rest > 0 else "")
