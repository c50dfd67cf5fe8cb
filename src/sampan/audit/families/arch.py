"""Class, byte order, machine and ABI against the target."""

from __future__ import annotations

from collections.abc import Iterator

from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.world import World, fits
from sampan.spec.artefacts import Finding

_ABIS = ("ELFOSABI_SYSV", "ELFOSABI_LINUX")  # all that Linux and glibc's loader take


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:  # noqa: ARG001
    """``arch.machine``. An object file or core dump of another architecture is never run, so it is a warning."""
    facts = world.files[path]
    if fits(facts, world.arch) and facts.osabi in _ABIS:
        return
    severity = "error" if facts.kind in ("executable", "shared") else "warning"
    values = (("found", describe(facts)), ("wanted", world.profile.arch))
    yield Finding("arch.machine", severity, world.name(path), values)


def describe(facts: ElfFacts) -> str:
    """Such as ``EM_ARM, 32-bit, little-endian``."""
    order = "little-endian" if facts.little_endian else "big-endian"
    abi = "" if facts.osabi in _ABIS else f", {facts.osabi}"
    return f"{facts.machine}, {facts.bits}-bit, {order}{abi}"
