"""Reads ``sampan/data/plan.toml`` and ``variants.toml``."""

from __future__ import annotations

import sys
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = dict[str, Any]


@cache
def table(name: str) -> Table:
    """One TOML file below ``sampan/data``."""
    loaded: Table = tomllib.loads((resources.files("sampan") / "data" / name).read_text(encoding="utf-8"))
    return loaded
