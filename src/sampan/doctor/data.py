"""Reads the TOML files below ``sampan/data/doctor``."""

from __future__ import annotations

import sys
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable

    import tomllib
else:
    from importlib.abc import Traversable

    import tomli as tomllib

Table = dict[str, Any]
NOT_CASES = ("phrases.toml", "facts.toml")


@cache
def table(name: str) -> Table:
    """One file."""
    loaded: Table = tomllib.loads((_folder() / name).read_text(encoding="utf-8"))
    return loaded


@cache
def case_files() -> tuple[str, ...]:
    """The files that hold cases, sorted."""
    names = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name for name in names if name.endswith(".toml") and name not in NOT_CASES))


def parse(text: str) -> Table:
    """TOML text as a table. Raises tomllib.TOMLDecodeError, a ValueError."""
    loaded: Table = tomllib.loads(text)
    return loaded


def _folder() -> Traversable:
    return resources.files("sampan") / "data" / "doctor"
