"""The data files of ``data/isa``."""

from __future__ import annotations

import sys
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(name: str) -> dict[str, Any]:
    """One file of ``data/isa``."""
    return read_path(f"isa/{name}")


def read_path(name: str) -> dict[str, Any]:
    """One TOML file below ``data``."""
    text = (resources.files("sampan") / "data" / f"{name}.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    return data
