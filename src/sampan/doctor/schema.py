"""From TOML to cases, with an error that names the file, the case and what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import chain
from typing import Any, NoReturn

from sampan.doctor import checks, patterns
from sampan.doctor.data import Table
from sampan.doctor.model import CONFIDENCES, SEVERITIES, STATUSES, Case, Cause, Collect, FactPattern
from sampan.errors import BadInputError
from sampan.i18n import LANGUAGES

SCHEMA = "sampan/doctor-cases/1"
_CODE = re.compile(r"[a-z0-9]{2,20}\.[a-z0-9-]{2,40}")
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
    for problem in chain(checks.pattern_faults(case), checks.rule_faults(case), checks.text_faults(case, known)):
        fail(problem)
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
        symptom=bool(entry.get("symptom", False)),
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
