"""The instruction tables of ``data/isa/ARCH.toml``, and one array that looks a word up in all of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sampan.audit.instructions.isadata import read

KEY_SHIFT = 10  # the low ten bits are operands in nearly every encoding
NOTHING, NOT_CODE = 0, 255


@dataclass(frozen=True)
class Pattern:
    """``word & mask == value``."""

    mask: int
    value: int


@dataclass(frozen=True)
class Group:
    """One encoding group. ``harmless``: it is met in code that never runs without the feature."""

    feature: str
    name: str
    encoding: str
    patterns: tuple[Pattern, ...]
    harmless: bool = False


@dataclass(frozen=True)
class WordTable:
    """The groups of one architecture with instructions of 32 bits, and what is no instruction."""

    groups: tuple[Group, ...]
    not_code: tuple[Pattern, ...]


@cache
def word_table(arch: str) -> WordTable:
    """The table of ``aarch64`` or ``loongarch64``."""
    data = read(arch)
    groups = [_group(one, harmless=False) for one in data["group"]]
    groups += [_group(one, harmless=True) for one in data.get("harmless", ())]
    return WordTable(tuple(groups), _patterns(data["not_code"]["match"]))


def _group(one: dict[str, Any], *, harmless: bool) -> Group:
    return Group(one["feature"], one["name"], one["encoding"], _patterns(one["match"]), harmless)


def _patterns(texts: list[str]) -> tuple[Pattern, ...]:
    return tuple(Pattern(*(int(part, 16) for part in text.split())) for text in texts)


@cache
def lookup(arch: str) -> npt.NDArray[np.uint8]:
    """4 MiB: for the upper 22 bits of a word the number of its group plus one, NOTHING or NOT_CODE. Of groups that
    look at lower bits too it gives candidates, see ``confirmed``."""
    table = word_table(arch)
    found = np.zeros(1 << (32 - KEY_SHIFT), np.uint8)
    for pattern in table.not_code:
        found[_keys(pattern)] = NOT_CODE
    found[0] = NOTHING  # zeros pad between functions
    for number, group in enumerate(table.groups, 1):
        for pattern in group.patterns:
            found[_keys(pattern)] = number
    return found


def _keys(pattern: Pattern) -> npt.NDArray[np.uint32]:
    """Every key under the pattern: all values of its free bits."""
    keys = np.array([pattern.value >> KEY_SHIFT], np.uint32)
    for bit in range(32 - KEY_SHIFT):
        if not pattern.mask >> (bit + KEY_SHIFT) & 1:
            keys = np.concatenate((keys, keys | np.uint32(1 << bit)))
    return keys


def confirmed(arch: str, words: npt.NDArray[np.uint32], numbers: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which candidates really match when the low bits count too."""
    sure = np.ones(len(words), bool)
    for number, group in enumerate(word_table(arch).groups, 1):
        if any(pattern.mask & ((1 << KEY_SHIFT) - 1) for pattern in group.patterns):
            rows = np.flatnonzero(numbers == number)
            some = words[rows]
            matches = [(some & np.uint32(p.mask)) == np.uint32(p.value) for p in group.patterns]
            sure[rows] = np.logical_or.reduce(matches) if len(rows) else True
    return sure
