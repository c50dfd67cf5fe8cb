"""Conditions on facts: ``page_size > 4096``, ``features lacks atomics``, ``driver < 550``, ``kysec = on``.

A fact is text; numbers and versions are compared part by part. An unknown fact makes a condition unknown, never
true or false. The word on the right may be a placeholder, ``{version}``, of the text that was matched.

What the matched text says itself, a group of the pattern, goes before a fact of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_FORM = re.compile(r"([a-z_]+) (<=|>=|<|>|=|!=|has|lacks|contains) (\S.{0,80})")
_NUMBER = re.compile(r"\d+")
_ORDER = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}


@dataclass(frozen=True)
class Fact:
    """``where``: the profile, this machine, or the line of a text that told it."""

    value: str
    where: str


Facts = Mapping[str, Fact]


def fault(condition: str) -> str:
    """What is wrong with the condition's form; empty where nothing is."""
    return "" if _FORM.fullmatch(condition) else f"not a condition: {condition!r} (NAME OP VALUE)"


def fact_name(condition: str) -> str:
    """The fact that a condition asks for."""
    return condition.partition(" ")[0]


def holds(conditions: Sequence[str], facts: Facts, values: Mapping[str, str]) -> bool | None:
    """False where one is false, else None where one is unknown, else True."""
    results = [_one(condition, facts, values) for condition in conditions]
    if False in results:
        return False
    return None if None in results else True


def deciding(conditions: Sequence[str], facts: Facts) -> str:
    """The known facts among those that the conditions ask for, as people read them."""
    names = dict.fromkeys(fact_name(condition) for condition in conditions)
    return ", ".join(f"{name} = {_short(facts[name].value)} ({facts[name].where})" for name in names if name in facts)


def _short(value: str) -> str:
    return value if len(value) <= 60 else f"{value[:57]}…"


def _one(condition: str, facts: Facts, values: Mapping[str, str]) -> bool | None:
    match = _FORM.fullmatch(condition)
    if match is None:
        return None
    name, operator, wanted = match.groups()
    if wanted.startswith("{"):
        wanted = values.get(wanted.strip("{}"), "")
    known = values.get(name) or (facts[name].value if name in facts else None)
    if known is None or not wanted:
        return None
    if operator in _ORDER:
        return compare(known, wanted) in _ORDER[operator]
    if operator in {"has", "lacks"}:
        return (wanted in known.split()) == (operator == "has")
    if operator == "contains":
        return wanted.lower() in known.lower()
    return (known.lower() == wanted.lower()) == (operator == "=")


def compare(left: str, right: str) -> int:
    """-1, 0 or 1: ``2.9`` is below ``2.28``."""
    one, other = number(left), number(right)
    return (one > other) - (one < other)


def number(text: str) -> tuple[int, ...]:
    """All numbers in a text: ``3.4.25`` -> (3, 4, 25), without final zeros; ``unlimited`` is above all."""
    if text == "unlimited":
        return (1 << 64,)
    parts = [int(part[:12]) for part in _NUMBER.findall(text)]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
