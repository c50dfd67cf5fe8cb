"""What a pattern may be, so that no text can hang it, and the words that every match must hold.

Both come from the parsed form of the regular expression. The words (lower case) let the scanner look at
hundreds of megabytes with plain substring search; only lines with such a word ever meet the expression.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

_sre: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

LONGEST_REPEAT = 400
LONGEST_LINE = 2000  # one repeat of a pattern may be as long as a line
MOST_REPEATS = 6  # of more than one character class each, so a line of 2000 letters stays cheap
LARGEST_NESTED = 64  # as in (?:[.][0-9]{1,4}){0,3}
SHORTEST_WORD = 4


@cache
def compiled(pattern: str, *, many_lines: bool = False) -> re.Pattern[str]:
    """The pattern, compiled when it is first needed."""
    return re.compile(pattern, re.MULTILINE if many_lines else 0)


def groups(pattern: str) -> frozenset[str]:
    """The names of the pattern's groups."""
    return frozenset(_sre.parse(pattern).state.groupdict)


def fault(pattern: str, *, searched: bool = True) -> str:
    """What makes the pattern unfit, in English; empty where it is fit. ``searched``: it needs words."""
    try:
        tree = _sre.parse(pattern)
    except (re.error, OverflowError) as error:
        return f"not a regular expression: {error}"
    wide = whole = 0
    for name, value, inside in _walk(tree, 1):
        if name in {"GROUPREF", "GROUPREF_EXISTS"}:
            return "back-references are not allowed"
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, high, _ = value
            whole += int(high) > LONGEST_REPEAT
            if int(high) > LONGEST_LINE or whole > 1:
                return f"a repeat must be bounded by at most {LONGEST_REPEAT}: write {{0,200}} instead of *"
            if inside > 1 and high > low and int(high) * inside > LARGEST_NESTED:
                return "a repeat inside of a repeat is not allowed"
            wide += high - low > 16
    if wide > MOST_REPEATS:
        return f"more than {MOST_REPEATS} wide repeats"
    return (
        ""
        if words(pattern) or not searched
        else f"no fixed word of {SHORTEST_WORD} or more letters that every match holds"
    )


def _walk(tree: Any, inside: int) -> Iterator[tuple[str, Any, int]]:
    """Every node with how often the repeats above it may repeat it."""
    for kind, value in tree:
        name = str(kind)
        yield name, value, inside
        for part in _parts(name, value):
            yield from _walk(part, inside * int(value[1]) if name.endswith("_REPEAT") else inside)


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
    """Lower-case words of which every matching line holds at least one; empty where none can be told."""
    found = _needed(_sre.parse(pattern))
    return found if found and _shortest(found) >= SHORTEST_WORD else frozenset()


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
        if run:
            choices.append(frozenset({run}))
        run = ""
        choices.append(_of_part(name, value))
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
