"""The composite values of a survey block: cards, device nodes, disks, the user, the moment."""

from __future__ import annotations

from dataclasses import replace

from sampan.spec.target import DeviceFacts, DiskFacts, GpuFacts, Moment, NpuFacts, UserFacts
from sampan.survey import script
from sampan.survey.fields import Fields, parts


def quota(raw: str | None) -> float | None:
    """``150000/100000`` as CPUs' worth of time; None for no limit."""
    granted, _, period = (raw or "").partition("/")
    return int(granted) / int(period) if period and int(period) else None


def libraries(value: str | None) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Those that are there, and those that are not; (None, ()) where nobody looked."""
    return (None, ()) if value is None else script.unpack_libraries(*parts(value, 2)[:2])


def gpu(value: str) -> GpuFacts:
    """Name, compute capability, driver, MiB; what is empty is unknown."""
    name, capability, driver, mebibytes = parts(value, 4)[:4]
    memory = int(mebibytes) << 20 if mebibytes.isdigit() else None
    return GpuFacts(name=name, compute_capability=capability or None, driver=driver or None, memory_bytes=memory)


def npus(value: str | None) -> NpuFacts | None:
    """Count, name, driver."""
    if value is None:
        return None
    count, name, driver = parts(value, 3)[:3]
    return NpuFacts(count=int(count), name=name or None, driver=driver or None)


def devices(values: list[str]) -> tuple[DeviceFacts, ...]:
    """A node without rights of its own has those of the one before."""
    found: list[DeviceFacts] = []
    for value in values:
        path, mode, owner, group, usable = parts(value, 5)[:5]
        device = DeviceFacts(path, mode, owner, group, usable == "yes")
        found.append(replace(found[-1], path=path) if not mode and found else device)
    return tuple(found)


def disks(values: list[str]) -> tuple[DiskFacts, ...]:
    """A folder whose mount was described before names only that mount."""
    found: dict[str, DiskFacts] = {}
    told = []
    for value in values:
        path, mount, filesystem, options, size, free = parts(value, 6)[:6]
        if filesystem:
            found[mount] = DiskFacts(
                path=path,
                mount=mount,
                filesystem=filesystem,
                noexec="e" in options,
                nosuid="s" in options,
                read_only="r" in options,
                size_bytes=int(size) * 1024 if size else None,
                free_bytes=int(free) * 1024 if free else None,
            )
        if mount in found:
            told.append(replace(found[mount], path=path))
    return tuple(told)


def user(value: str | None) -> UserFacts | None:
    """Name, number, groups joined by +, whether sudo is there."""
    if value is None:
        return None
    name, uid, groups, sudo = parts(value, 4)[:4]
    return UserFacts(name, int(uid), tuple(groups.split("+")) if groups else (), {"yes": True, "no": False}.get(sudo))


def moment(fields: Fields) -> Moment | None:
    """What is another a minute later; None where the machine had no clock to tell."""
    utc, ports = fields.text("t"), fields.raw("p")
    if utc is None:
        return None
    listening = None if ports is None else tuple(int(port) for port in ports.split(",") if port)
    return Moment(utc=utc, memory_available_bytes=fields.number("ma", 1024), listening_ports=listening)
