"""What a wheel's platform tags promise, against what its files need of the system."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from sampan.audit.facts import ElfFacts
from sampan.audit.wheels import policies
from sampan.audit.wheels.policies import Tag
from sampan.audit.world import World
from sampan.spec.artefacts import Finding


def judge(tags: Sequence[Tag], shown: str, files: Sequence[str], world: World) -> Iterator[Finding]:
    """``wheel.tag``, ``wheel.musl``: the promise, and whether the target's C library is the promised one."""
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
            yield Finding("wheel.tag", "warning", shown, _values("any", tag.text, "-", inner(files[0], world)))
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
            why = f"{_symbol(world.files[path], reason)} ({inner(path, world)})"
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


def inner(path: str, world: World) -> str:
    """The file's name inside of its archive."""
    return world.name(path).rpartition("!")[2]
