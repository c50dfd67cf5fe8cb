"""From hits and facts to findings: which cases hold, which only follow from others, in which order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sampan import i18n
from sampan.doctor.checks import PLACEHOLDER
from sampan.doctor.conditions import Fact, Facts, compare, deciding, fact_name, holds
from sampan.doctor.model import CONFIDENCES, Case, Cause, Evidence, Finding, Hit, PossibleCause
from sampan.doctor.roles import order, with_roles

MOST_EVIDENCE = 5
HERE = "here"  # the fact that says: this machine was looked at
_MOST_LISTED = 8


def judge(cases: Mapping[str, Case], hits: Iterable[Hit], times: Counter[str], facts: Facts) -> tuple[Finding, ...]:
    """The findings, causes first, each with what follows from it named as such."""
    kept = _without_covered(cases, list(hits))
    found: dict[str, Finding] = {}
    for case in cases.values():
        own = [hit for hit in kept if hit.code == case.code]
        if own or (case.here and HERE in facts):
            finding = _finding(case, own, times[case.code], facts)
            if finding:
                found[case.code] = finding
    return tuple(sorted(with_roles(cases, found), key=lambda one: order(cases, one)))


def _without_covered(cases: Mapping[str, Case], hits: list[Hit]) -> list[Hit]:
    """A line that a more special case explains is no evidence for the general one."""
    covered = {
        (general, hit.evidence.source, hit.evidence.line) for hit in hits for general in cases[hit.code].instead_of
    }
    return [hit for hit in hits if (hit.code, hit.evidence.source, hit.evidence.line) not in covered]


def _finding(case: Case, hits: list[Hit], times: int, facts: Facts) -> Finding | None:
    values = _values(case, hits)
    state = holds(case.when, facts, values)
    if state is False or (state is None and (case.must_know or case.here)):
        return None
    shown = {**{name: fact.value for name, fact in facts.items()}, **values}
    confidence = case.confidence if state else _lower(case.confidence)
    causes = _causes(case, facts, values, shown)
    if case.causes and not causes:
        return None
    text = {name: _fill(template, shown) for name, template in case.texts[i18n.language()].items()}
    only = causes[0] if len(causes) == 1 else None
    return Finding(
        code=case.code,
        severity=case.severity,
        confidence=confidence if not case.causes or (only and only.decided) else _lower(confidence),
        status=case.status,
        role="cause",
        because="",
        what=text["what"],
        cause=only.cause if only else text.get("cause", ""),
        prove=(only.prove if only else "") or _fill(case.prove, shown),
        fix=only.fix if only else text.get("fix", ""),
        avoid=text.get("avoid", ""),
        causes=causes,
        evidence=_evidence(case, hits, facts),
        times=max(times, len(hits)) if hits else 1,
        values=dict(sorted(values.items())),
        source=case.source,
    )


def _values(case: Case, hits: list[Hit]) -> dict[str, str]:
    """The first value of each name, then what is gathered over all hits."""
    values: dict[str, str] = {}
    for hit in hits:
        for name, value in hit.values.items():
            values.setdefault(name, value)
    for collect in case.collect:
        values[collect.name] = _each(hits, collect.each) if collect.each else _highest(hits, collect.max, collect.by)
    return values


def _each(hits: list[Hit], name: str) -> str:
    found = list(dict.fromkeys(hit.values[name] for hit in hits if name in hit.values))
    more = f" … (+{len(found) - _MOST_LISTED})" if len(found) > _MOST_LISTED else ""
    return ", ".join(found[:_MOST_LISTED]) + more


def _highest(hits: list[Hit], name: str, by: str) -> str:
    """``GLIBC_2.27, GLIBCXX_3.4.25``: of each namespace the highest version."""
    best: dict[str, str] = {}
    for hit in hits:
        space, value = hit.values.get(by, ""), hit.values.get(name, "")
        if value and (space not in best or compare(value, best[space]) > 0):
            best[space] = value
    return ", ".join(f"{space}_{value}" if space else value for space, value in sorted(best.items()))


def _causes(
    case: Case, facts: Facts, values: Mapping[str, str], shown: Mapping[str, str]
) -> tuple[PossibleCause, ...]:
    """Those that no fact excludes; where facts speak for some, only these."""
    states = [(cause, holds(cause.when, facts, values) if cause.when else None) for cause in case.causes]
    proved = [cause for cause, state in states if state]
    remaining = proved or [cause for cause, state in states if state is None]
    return tuple(_possible(cause, bool(proved), facts, shown) for cause in remaining)


def _possible(cause: Cause, decided: bool, facts: Facts, shown: Mapping[str, str]) -> PossibleCause:
    text = cause.texts[i18n.language()]
    return PossibleCause(
        name=cause.name,
        cause=_fill(text["cause"], shown),
        prove=_fill(cause.prove, shown),
        fix=_fill(text["fix"], shown),
        decided=decided,
        decided_by=deciding(cause.when, facts) if decided else "",
    )


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Placeholders that nothing filled are said to be unknown."""
    told = i18n.typed_here(template)  # before the values: what a machine printed stays as it was
    return PLACEHOLDER.sub(lambda match: values.get(match[1]) or i18n.text("word.unknown"), told)


def _evidence(case: Case, hits: list[Hit], facts: Facts) -> tuple[Evidence, ...]:
    lines = dict.fromkeys(hit.evidence for hit in hits)
    if not lines:
        names = dict.fromkeys(map(fact_name, case.when))
        return tuple(
            Evidence(facts[name].where, 0, f"{name} = {facts[name].value}") for name in names if name in facts
        )
    return tuple(lines)[:MOST_EVIDENCE]


def _lower(confidence: str) -> str:
    return CONFIDENCES[min(CONFIDENCES.index(confidence) + 1, len(CONFIDENCES) - 1)]


def as_text(facts: Mapping[str, Fact]) -> dict[str, str]:
    """Facts for the diagnosis: value and where it was told."""
    return {name: f"{fact.value} ({fact.where})" for name, fact in sorted(facts.items())}
