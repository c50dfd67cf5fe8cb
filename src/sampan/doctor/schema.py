"""From TOML to cases, with an error that names the file, the case and what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, NoReturn

from sampan.doctor import conditions, derive, patterns
from sampan.doctor.data import Table
from sampan.doctor.model import CONFIDENCES, SEVERITIES, STATUSES, Case, Cause, Collect, FactPattern
from sampan.errors import BadInputError
from sampan.i18n import LANGUAGES

SCHEMA = "sampan/doctor-cases/1"
_CODE = re.compile(r"[a-z0-9]{2,20}\.[a-z0-9-]{2,40}")
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_LISTS = ("match", "near", "not_near", "also", "when", "source", "instead_of", "explains", "misleading", "yes", "no")
_CASE_KEYS = frozenset(field.name for field in fields(Case)) - {"texts", "causes", "file"} | {*LANGUAGES, "cause"}
_CAUSE_KEYS = frozenset({"name", "when", "prove", *LANGUAGES})


def read_cases(data: Table, file: str, known_facts: Iterable[str]) -> tuple[Case, ...]:
    """The cases of one file. Raises BadInputError ``doctor.case``."""
    if data.get("schema") != SCHEMA:
        _wrong(file, "-", f"schema must be {SCHEMA!r}")
    entries = data.get("case", [])
    if not isinstance(entries, list):
        _wrong(file, "-", "write [[case]] for each case")
    return tuple(_case(entry, file, frozenset(known_facts)) for entry in entries)


def read_facts(data: Table, file: str) -> tuple[FactPattern, ...]:
    """The facts that a text may tell. Raises BadInputError ``doctor.case``."""
    found = []
    for entry in data.get("fact", []):
        fact = FactPattern(str(entry.get("name", "")), str(entry.get("match", "")))
        problem = patterns.fault(fact.match) or ("" if "value" in patterns.groups(fact.match) else "no group 'value'")
        if problem:
            _wrong(file, fact.name, problem)
        found.append(fact)
    return tuple(found)


def _case(entry: Table, file: str, known: frozenset[str]) -> Case:
    code = str(entry.get("code", "?"))

    def fail(problem: str) -> NoReturn:
        _wrong(file, code, problem)

    if not _CODE.fullmatch(code):
        fail("code must look like topic.some-name")
    _only(entry, _CASE_KEYS, fail)
    _one_of(entry, "severity", SEVERITIES, fail)
    _one_of(entry, "confidence", CONFIDENCES, fail)
    case = _build(entry, code, file, fail)
    for problem in (*_pattern_faults(case), *_rule_faults(case)):
        fail(problem)
    _check_texts(case, known, fail)
    return case


def _build(entry: Table, code: str, file: str, fail: Callable[[str], NoReturn]) -> Case:
    lists = {name: _strings(entry.get(name, []), name, fail) for name in _LISTS}
    rank = entry.get("rank", 50)
    if not isinstance(rank, int) or not 0 <= rank <= 100:
        fail("rank is a number from 0 to 100")
    return Case(
        code=code,
        rank=rank,
        severity=entry["severity"],
        confidence=entry["confidence"],
        texts={language: _texts(entry.get(language), language, fail) for language in LANGUAGES},
        prove=str(entry.get("prove", "")),
        must_know=bool(entry.get("must_know", False)),
        here=bool(entry.get("here", False)),
        status=str(entry.get("status", STATUSES[0])),
        collect=tuple(_collect(name, each, fail) for name, each in entry.get("collect", {}).items()),
        derive=str(entry.get("derive", "")),
        causes=tuple(_cause(each, fail) for each in entry.get("cause", [])),
        file=file,
        **lists,
    )


def _cause(entry: Table, fail: Callable[[str], NoReturn]) -> Cause:
    _only(entry, _CAUSE_KEYS, fail)
    return Cause(
        name=str(entry.get("name", "")),
        when=_strings(entry.get("when", []), "when", fail),
        prove=str(entry.get("prove", "")),
        texts={language: _texts(entry.get(language), language, fail) for language in LANGUAGES},
    )


def _collect(name: str, entry: Table, fail: Callable[[str], NoReturn]) -> Collect:
    _only(entry, frozenset({"each", "max", "by"}), fail)
    found = Collect(name, **{key: str(value) for key, value in entry.items()})
    if bool(found.each) == bool(found.max):
        fail(f"collect.{name} needs either each or max")
    return found


def _pattern_faults(case: Case) -> Iterable[str]:
    if not case.match and not case.here:
        yield "a case needs a match, or here = true with conditions"
    if case.here and not case.when:
        yield "here = true needs conditions in when"
    if case.match and not case.yes:
        yield "yes must hold at least one sample text that this case recognises"
    for pattern in (*case.match, *case.near, *case.not_near, *case.also):
        problem = patterns.fault(pattern, searched=pattern in case.match)
        if problem:
            yield f"{problem}, in {pattern!r}"
    if case.derive and case.derive not in derive.KNOWN:
        yield f"derive must be one of {', '.join(derive.KNOWN)}"


def _rule_faults(case: Case) -> Iterable[str]:
    if case.status not in STATUSES:
        yield f"status must be one of {', '.join(STATUSES)}"
    if not case.source:
        yield "source is missing: a public thread such as owner/name#1, or the program whose message it is"
    for condition in (*case.when, *(each for cause in case.causes for each in cause.when)):
        problem = conditions.fault(condition)
        if problem:
            yield problem
    if len(case.causes) == 1:
        yield "one cause is no choice: put it into the case itself"


def values_of(case: Case) -> frozenset[str]:
    """The placeholders that a case's own patterns fill."""
    found = frozenset(collect.name for collect in case.collect) | derive.values(case.derive)
    return found.union(*(patterns.groups(pattern) for pattern in (*case.match, *case.near, *case.also)))


def _check_texts(case: Case, known: frozenset[str], fail: Callable[[str], NoReturn]) -> None:
    filled = values_of(case) | known
    for owner in (case.texts, *(cause.texts for cause in case.causes)):
        keys = {language: set(texts) for language, texts in owner.items()}
        if len({frozenset(each) for each in keys.values()}) != 1:
            fail(f"the languages have different texts: {keys}")
        for name in keys[LANGUAGES[0]]:
            used = [set(PLACEHOLDER.findall(owner[language][name])) for language in LANGUAGES]
            if used[0] != used[1]:
                fail(f"{name}: the languages have different placeholders")
            if used[0] - filled:
                fail(f"{name}: nothing fills {sorted(used[0] - filled)}")
    wanted = {"what"} if case.causes else {"what", "cause", "fix"}
    if not wanted <= set(case.texts[LANGUAGES[0]]):
        fail(f"each language needs {', '.join(sorted(wanted))}")
    if any(not {"cause", "fix"} <= set(cause.texts[LANGUAGES[0]]) for cause in case.causes):
        fail("each cause needs cause and fix in each language")


def _texts(entry: object, language: str, fail: Callable[[str], NoReturn]) -> Mapping[str, str]:
    if not isinstance(entry, dict) or not all(isinstance(text, str) and text.strip() for text in entry.values()):
        fail(f"[case.{language}] must hold texts")
    unknown = set(entry) - {"what", "cause", "fix", "avoid"}
    if unknown:
        fail(f"[case.{language}] has unknown keys {sorted(unknown)}")
    return entry


def _strings(value: object, name: str, fail: Callable[[str], NoReturn]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        fail(f"{name} must be a list of texts")
    return tuple(value)


def _only(entry: Table, allowed: frozenset[str], fail: Callable[[str], NoReturn]) -> None:
    unknown = set(entry) - allowed
    if unknown:
        fail(f"unknown keys {sorted(unknown)}")


def _one_of(entry: Table, name: str, allowed: tuple[str, ...], fail: Callable[[str], NoReturn]) -> None:
    if entry.get(name) not in allowed:
        fail(f"{name} must be one of {', '.join(allowed)}")


def _wrong(file: str, code: str, problem: Any) -> NoReturn:
    raise BadInputError("doctor.case", path=file, code=code, detail=problem)
