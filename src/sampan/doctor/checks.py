"""What may be wrong with a case whose form is right: each check gives reasons in English."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sampan.doctor import conditions, derive, patterns
from sampan.doctor.model import STATUSES, Case
from sampan.i18n import LANGUAGES

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def pattern_faults(case: Case) -> Iterable[str]:
    """Of match, near and what they need."""
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


def rule_faults(case: Case) -> Iterable[str]:
    """Of status, source, conditions and causes."""
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


def text_faults(case: Case, known: frozenset[str]) -> Iterable[str]:
    """Both languages say the same, with placeholders that something fills. ``known``: names of facts."""
    filled = values_of(case) | known
    for owner in (case.texts, *(cause.texts for cause in case.causes)):
        keys = {language: set(texts) for language, texts in owner.items()}
        if len({frozenset(each) for each in keys.values()}) != 1:
            yield f"the languages have different texts: {keys}"
            return
        for name in keys[LANGUAGES[0]]:
            used = [set(PLACEHOLDER.findall(owner[language][name])) for language in LANGUAGES]
            if used[0] != used[1]:
                yield f"{name}: the languages have different placeholders"
            if used[0] - filled:
                yield f"{name}: nothing fills {sorted(used[0] - filled)}"
    wanted = {"what"} if case.causes else {"what", "cause", "fix"}
    if not wanted <= set(case.texts[LANGUAGES[0]]):
        yield f"each language needs {', '.join(sorted(wanted))}"
    if any(not {"cause", "fix"} <= set(cause.texts[LANGUAGES[0]]) for cause in case.causes):
        yield "each cause needs cause and fix in each language"
