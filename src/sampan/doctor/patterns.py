"""What a pattern may be, so that no text can hang it."""

from __future__ import annotations

import re
from functools import cache

from sampan.doctor.literals import SHORTEST_WORD, parsed, walk, words

LONGEST_REPEAT = 400
LONGEST_LINE = 2000  # one repeat of a pattern may be as long as a line
MOST_REPEATS = 6  # of more than one character class each, so a line of 2000 letters stays cheap
LARGEST_NESTED = 64  # as in (?:[.][0-9]{1,4}){0,3}


#: a pattern that begins with a run of one class of letters
_RUN = re.compile(r"(?P<flags>(?:\(\?i\))?)\(\?P<\w+>(?P<letters>\[(?:\\.|[^\]\\])+\]|\\[Sw])\{\d+,(?P<most>\d+)\}")


@cache
def compiled(pattern: str, *, many_lines: bool = False) -> re.Pattern[str]:
    """The pattern, compiled when it is first needed."""
    return re.compile(_from_the_runs_start(pattern), re.MULTILINE if many_lines else 0)


def _from_the_runs_start(pattern: str) -> str:
    """The same pattern, tried at the start of a run of letters only, not again at each of its letters.

    A match that begins inside a run could have begun at its start, but where the run is longer than the pattern
    allows; there it may begin after so many letters.
    """
    run = _RUN.match(pattern)
    if run is None:
        return pattern
    letters, flags = run["letters"], run["flags"]
    return f"{flags}(?:(?<!{letters})|(?<={letters}{{{run['most']}}})){pattern[len(flags) :]}"


def groups(pattern: str) -> frozenset[str]:
    """The names of the pattern's groups."""
    return frozenset(parsed(pattern).state.groupdict)


def fault(pattern: str, *, searched: bool = True) -> str:
    """What makes the pattern unfit, in English; empty where it is fit. ``searched``: it needs words."""
    try:
        tree = parsed(pattern)
    except (re.error, OverflowError) as error:
        return f"not a regular expression: {error}"
    wide = whole = 0
    for name, value, inside in walk(tree):
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
