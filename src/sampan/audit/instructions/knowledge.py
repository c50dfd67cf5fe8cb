"""How programs guard code, from ``data/isa/guards.toml``."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache

from sampan.audit.instructions import isadata


@dataclass(frozen=True)
class Limits:
    """How far code is followed."""

    depth: int
    functions: int
    blocks: int
    total: int
    analysed: int
    callers: int


@dataclass(frozen=True)
class Knowledge:
    """Names that tell. Regular expressions, since files have a hundred thousand names."""

    asking: re.Pattern[str]
    variants: tuple[tuple[re.Pattern[str], str], ...]
    dispatchers: tuple[tuple[tuple[str, ...], str], ...]
    ending: re.Pattern[str]
    limits: Limits

    def asks(self, name: str) -> bool:
        """Whether a function of that name says what the CPU can do."""
        return bool(name and self.asking.fullmatch(name))

    def ends(self, name: str) -> bool:
        """Whether a function of that name never returns."""
        return bool(name and self.ending.fullmatch(name))

    def variant(self, name: str) -> str:
        """What the name of a function says of the choice among variants, empty where it says nothing."""
        bare = name.partition("+")[0]
        return next((how for pattern, how in self.variants if pattern.fullmatch(bare)), "")

    def dispatcher(self, path: str) -> str:
        """What chooses the code of that file when it runs, empty where nothing is known."""
        name, folder = posixpath.basename(path), posixpath.basename(posixpath.dirname(path))
        for patterns, how in self.dispatchers:
            if any(fnmatchcase(f"{folder}/{name}" if "/" in one else name, one) for one in patterns):
                return how
        return ""


@cache
def load() -> Knowledge:
    """What travels with this version."""
    data = isadata.read("guards")
    return Knowledge(
        asking=_any([name for one in data["asks"] for name in one["names"]]),
        variants=tuple((_any(one["names"]), one["how"]) for one in data["variants"]),
        dispatchers=tuple((tuple(one["files"]), one["how"]) for one in data["dispatchers"]),
        ending=_any(data["no_return"]["names"]),
        limits=Limits(**data["limits"]),
    )


@cache
def variant_features() -> dict[str, frozenset[str]]:
    """What each variant of the engine may use, in the kernel's words, by its name (``data/variants.toml``)."""
    return {one["name"]: frozenset(one["requires"]) for one in isadata.read_path("variants")["variant"]}


def _any(names: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(name) for name in names))
