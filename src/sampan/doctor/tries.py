"""Tries the patterns of one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sampan.doctor import derive, normal, patterns
from sampan.doctor.budget import Budget
from sampan.doctor.knowledge import Needle
from sampan.doctor.model import Case

_MOST_LOOKS = 200  # of one case at the lines around, in vain or not


@dataclass(frozen=True)
class Match:
    """What a line means: a case, or a fact, with the values that it gives. ``place``: the letter where it begins."""

    needle: Needle
    values: dict[str, str]
    place: int


class Tries:
    """Bounded in time; see Budget."""

    def __init__(self) -> None:
        self.budget = Budget()
        self._looks: Counter[str] = Counter()

    def tired(self, name: str) -> bool:
        """Whether the lines around have been looked at often enough for this case."""
        return self._looks[name] >= _MOST_LOOKS

    def line(
        self, unit: bytes, needles: Iterable[Needle], around: Callable[[], str]
    ) -> tuple[list[Match], list[str]]:
        """What one line means, less what a more special case on it explains; and whose patterns it has."""
        text = normal.line_text(unit)
        found: dict[str, Match] = {}
        touched: dict[str, None] = {}
        now = self.budget.start()
        for needle in needles:
            if needle.name in found or not self.budget.allows(needle.pattern):
                continue
            match = patterns.compiled(needle.pattern).search(text)
            now = self.budget.spend(needle.pattern, now)
            if match is None:
                continue
            touched[needle.name] = None
            values = {key: value for key, value in match.groupdict().items() if value}
            more = self._more(needle.case, values, around) if needle.case else values
            if more is not None:
                found[needle.name] = Match(needle, more, match.start())
            now = self.budget.start()
        covered = {code for one in found.values() if one.needle.case for code in one.needle.case.instead_of}
        return [one for name, one in found.items() if name not in covered], list(touched)

    def _more(self, case: Case, values: dict[str, str], around: Callable[[], str]) -> dict[str, str] | None:
        """With the values of the lines around and the computed ones; None where those lines do not bear it out."""
        if case.near or case.not_near or case.also:
            self._looks[case.code] += 1
            if self._looks[case.code] > _MOST_LOOKS or not self.budget.allows(case.code):
                return None
            now = self.budget.start()
            near = _near(case, around())
            self.budget.spend(case.code, now)
            if near is None:
                return None
            values = {**near, **values}
        return {**values, **derive.KNOWN[case.derive](values)} if case.derive else values


def _near(case: Case, around: str) -> dict[str, str] | None:
    """The values of ``near`` and ``also``; None where a ``near`` is missing or a ``not_near`` is there."""
    values: dict[str, str] = {}
    for pattern in (*case.near, *case.also):
        match = patterns.compiled(pattern, many_lines=True).search(around)
        if match is None and pattern in case.near:
            return None
        values.update(_groups(match.groupdict() if match else {}))
    if any(patterns.compiled(pattern, many_lines=True).search(around) for pattern in case.not_near):
        return None
    return values


def _groups(found: Mapping[str, str | None]) -> Iterable[tuple[str, str]]:
    return ((name, value) for name, value in found.items() if value)
