"""The known targets: each is an operating system plus a CPU, composed from data.

``data/profiles/NAME.toml`` names one entry of ``systems.toml`` and one of ``cpus.toml``; an entry with ``based_on``
takes over all that it does not say again. Every fact has a source that travels in the profile.
"""

from __future__ import annotations

from sampan.errors import UsageError
from sampan.spec.target import CpuFacts, LibcFacts, OsFacts, Source, TargetProfile
from sampan.survey.data import Table, profile_names, table

_PLAIN_FACTS = ("systemd", "cgroup", "python", "openssh", "openssl")


def names() -> tuple[str, ...]:
    """The names that ``--target`` knows, sorted."""
    return profile_names()


def about(name: str) -> dict[str, str]:
    """One line on a known target, by language: ``{"en": …, "zh": …}``."""
    lines: dict[str, str] = table(f"profiles/{name}.toml")["about"]
    return lines


def load(name: str) -> TargetProfile:
    """The profile of a known target. Raises UsageError ``target.unknown``."""
    if name not in profile_names():
        raise UsageError("target.unknown", target=name, known=", ".join(profile_names()))
    chosen = table(f"profiles/{name}.toml")
    return compose(name, entry(table("systems.toml"), chosen["system"]), entry(table("cpus.toml"), chosen["cpu"]))


def entry(entries: Table, name: str) -> Table:
    """One entry laid over the one that it is based on; sources of both are kept, the entry's own first."""
    own: Table = entries[name]
    if "based_on" not in own:
        return own
    merged: Table = {**entry(entries, own["based_on"])}
    for key, value in own.items():
        below = merged.get(key)
        if key == "sources":
            merged[key] = [*value, *(below or [])]
        elif isinstance(value, dict) and isinstance(below, dict):
            merged[key] = {**below, **value}
        else:
            merged[key] = value
    del merged["based_on"]
    return merged


def compose(name: str, system: Table, cpu: Table) -> TargetProfile:
    """One profile from a system's and a CPU's facts; what neither says stays unknown."""
    plain = {fact: system[fact] for fact in _PLAIN_FACTS if fact in system}
    return TargetProfile(
        name=name,
        arch=cpu["arch"],
        os=OsFacts(**system["os"]),
        cpu=CpuFacts(
            model=cpu["model"],
            features=tuple(sorted(cpu["features"])),
            features_known=cpu.get("features_known", True),
            vendor=cpu.get("vendor"),
            implementer=cpu.get("implementer"),
            part=cpu.get("part"),
        ),
        page_size=system["page_size"],
        libc=LibcFacts(**system.get("libc", {})),
        sources=tuple(Source(**source) for source in [*cpu["sources"], *system["sources"]]),
        **plain,
    )
