"""Which findings only follow from others, or mislead beside them; and in which order they are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sampan.doctor.model import CONFIDENCES, SEVERITIES, Case, Evidence, Finding


def with_roles(cases: Mapping[str, Case], found: Mapping[str, Finding]) -> Iterable[Finding]:
    """Consequences and red herrings of findings that are really there."""
    for code, finding in found.items():
        role, because = "cause", ""
        for other in found:
            if other == code or _explained_by(cases, other, code):
                continue
            if code in cases[other].misleading:
                role, because = "red-herring", other
                break
            if code in cases[other].explains and role == "cause":
                role, because = "consequence", other
        if role == "cause" and cases[code].symptom:
            role, because = _root(cases, found, code)
        yield replace(finding, role=role, because=because)


def _root(cases: Mapping[str, Case], found: Mapping[str, Finding], code: str) -> tuple[str, str]:
    """Of a symptom, which says only that something failed before: the failure that is nearest to the root."""
    roots = [
        other
        for other, one in found.items()
        if one.severity == "error" and not cases[other].symptom and cases[other].rank > cases[code].rank
    ]
    first = max(roots, key=lambda other: (cases[other].rank, other), default="")
    return ("consequence", first) if first else ("cause", "")


def _explained_by(cases: Mapping[str, Case], one: str, other: str) -> bool:
    """Two cases that name each other: the one of higher rank wins."""
    names = {*cases[other].explains, *cases[other].misleading}
    return one in names and cases[other].rank >= cases[one].rank


_ROLES = ("cause", "consequence", "red-herring")


def order(cases: Mapping[str, Case], finding: Finding) -> tuple[object, ...]:
    """Causes first, then the worse, the nearer to the root, the surer."""
    first = finding.evidence[0] if finding.evidence else Evidence("", 0, "")
    return (
        _ROLES.index(finding.role),
        SEVERITIES.index(finding.severity),
        -cases[finding.code].rank,
        CONFIDENCES.index(finding.confidence),
        first.line,
    )
