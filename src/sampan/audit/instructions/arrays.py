"""Sorting of large arrays without the memory that hashing takes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sampan.audit.instructions.layouts import MAX_ROWS, Array


def distinct(values: Array) -> Array:
    """Every value once, in order."""
    ordered = np.sort(values)
    return ordered[_fresh(ordered)]


def first_of_each(values: Array) -> tuple[Array, Array]:
    """Every value once, in order, and where it stands first."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    fresh = _fresh(ordered)
    return ordered[fresh], order[fresh]


def collected(parts: Iterable[Array]) -> Array:
    """Every value of all parts once, in order, MAX_ROWS at the most: then the lowest."""
    found, waiting, size = np.empty(0, np.int64), list[Array](), 0
    for part in parts:
        waiting.append(distinct(part))
        size += len(waiting[-1])
        if size > MAX_ROWS >> 2:
            found, waiting, size = distinct(np.concatenate((found, *waiting)))[:MAX_ROWS], [], 0
    return distinct(np.concatenate((found, *waiting)))[:MAX_ROWS]


def _fresh(ordered: Array) -> np.typing.NDArray[np.bool_]:
    """Which values differ from the one before them."""
    fresh = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return fresh
