"""The fixed words of a pattern, from its parsed form: what every matching line must hold (in lower case).

They let the scanner look at hundreds of megabytes with plain substring search; only lines with the right words
ever meet the expression.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

_sre: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

SHORTEST_WORD = 4
_SHORTEST_MUST = 2
_DIGITS = frozenset(map(ord, "0123456789"))


def parsed(pattern: str) -> Any:
    """The tree of a pattern. Raises re.error, OverflowError."""
    return _sre.parse(pattern)


def walk(tree: Any, inside: int = 1) -> Iterator[tuple[str, Any, int]]:
    """Every node with how often the repeats above it may repeat it."""
    for kind, value in tree:
        name = str(kind)
        yield name, value, inside
        for part in _parts(name, value):
            yield from walk(part, inside * int(value[1]) if name.endswith("_REPEAT") else inside)


def _parts(name: str, value: Any) -> Sequence[Any]:
    if name == "BRANCH":
        return tuple(value[1])
    if name == "SUBPATTERN":
        return (value[3],)
    if name.endswith("_REPEAT"):
        return (value[2],)
    if name in {"ASSERT", "ASSERT_NOT"}:
        return (value[1],)
    return (value,) if name == "ATOMIC_GROUP" else ()


@cache
def words(pattern: str) -> frozenset[str]:
    """Words of which every matching line holds at least one; empty where none can be told."""
    found = _needed(parsed(pattern))
    return found if found and _shortest(found) >= SHORTEST_WORD else frozenset()


@cache
def musts(pattern: str) -> frozenset[str]:
    """All the fixed runs that every matching line holds."""
    return frozenset(run for run in _runs(parsed(pattern)) if len(run) >= _SHORTEST_MUST)


@cache
def digit_blind(pattern: str) -> bool:
    """Whether one digit is as good as another for the pattern: no literal digit, no part of the ten."""
    return not any(_cares(name, value) for name, value, _ in walk(parsed(pattern)))


def _cares(name: str, value: Any) -> bool:
    if name in {"LITERAL", "NOT_LITERAL"}:
        return value in _DIGITS
    if name != "IN":
        return False
    held: set[int] = set()
    for kind, what in value:
        if str(kind) == "LITERAL":
            held |= _DIGITS & {what}
        elif str(kind) == "RANGE":
            held |= _DIGITS & set(range(what[0], min(what[1], 127) + 1))
    return 0 < len(held) < len(_DIGITS)


def _shortest(found: frozenset[str]) -> int:
    return min(len(word.encode()) for word in found)


def _needed(tree: Any) -> frozenset[str]:
    """The best set among all parts of a sequence: its shortest word as long as may be."""
    choices: list[frozenset[str]] = []
    run = ""
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            run += chr(value).lower()
            continue
        choices += [frozenset({run}), _of_part(name, value)] if run else [_of_part(name, value)]
        run = ""
    choices.append(frozenset({run} if run else ()))
    return max(filter(None, choices), key=lambda found: _shortest(found) - len(found) / 4, default=frozenset())


def _of_part(name: str, value: Any) -> frozenset[str]:
    if name == "SUBPATTERN":
        return _needed(value[3])
    if name == "BRANCH":
        each = [_needed(branch) for branch in value[1]]
        return frozenset().union(*each) if all(each) else frozenset()
    if name.endswith("_REPEAT") and value[0] > 0:
        return _needed(value[2])
    return frozenset()


def _runs(tree: Any) -> Iterator[str]:
    """Literal runs of a sequence and of what it cannot do without."""
    run = ""
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            run += chr(value).lower()
            continue
        yield run
        run = ""
        if name == "SUBPATTERN":
            yield from _runs(value[3])
        elif name.endswith("_REPEAT") and value[0] > 0:
            yield from _runs(value[2])
    yield run
