"""Reads the facts that the survey needs from ``sampan/data``."""

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


@cache
def table(name: str) -> Table:
    """One TOML file below ``sampan/data``, such as ``cpus.toml`` or ``profiles/uos-20.toml``."""
    loaded: Table = tomllib.loads((_folder() / name).read_text(encoding="utf-8"))
    return loaded


@cache
def profile_names() -> tuple[str, ...]:
    """The stems of ``data/profiles/*.toml``, sorted."""
    names = (entry.name for entry in (_folder() / "profiles").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def _folder() -> Traversable:
    return resources.files("sampan") / "data"
