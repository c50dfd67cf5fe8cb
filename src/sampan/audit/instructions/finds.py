"""Instructions that were found, and how often each feature is used in each class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.callers import SiteFinder
from sampan.audit.instructions.facts import Use
from sampan.audit.instructions.functions import Functions


@dataclass(frozen=True, slots=True)
class Find:
    """Instructions of one kind in one function: the first one's address, and how many. ``harmless``: why they never
    run without the feature."""

    address: int
    features: tuple[str, ...]
    harmless: str = ""
    count: int = 1


@dataclass(frozen=True)
class Finder:
    """``each`` gives every single instruction between two addresses, ``sites`` what leads to given functions."""

    each: Callable[[int, int], Iterable[Find]]
    sites: SiteFinder


@dataclass
class _Row:
    count: int
    first: int
    root: str


class Tally:
    """By class and feature: how often, where first, and what leads there or guards it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], _Row] = {}

    def count(self, reached: str, find: Find, root: str) -> None:
        """Add a find in the class ``reached``."""
        for feature in find.features:
            row = self._rows.setdefault((reached, feature), _Row(0, find.address, root))
            row.count += find.count

    def uses(self, binary: Binary, functions: Functions) -> tuple[Use, ...]:
        """All of it, in order."""
        return tuple(
            Use(
                feature=feature,
                reach=reached,
                count=row.count,
                address=row.first,
                offset=binary.offset_of(row.first) or 0,
                function=functions.name(row.first),
                root=row.root,
            )
            for (reached, feature), row in sorted(self._rows.items())
        )
