"""What ``data/gate.toml`` and ``data/gate_texts.toml`` say."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from sampan.errors import UsageError
from sampan.spec.gate import GateBounds

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Tolerance:
    """The least cosine with a golden vector that a service may have."""

    by_type: dict[str, float]
    default: float
    least: float
    growth: float
    slack: float

    def of(self, quantization: str, measured: float | None = None) -> float:
        """For a file of that type. Where its worst cosine was measured, it may lose
        ``growth`` times as much on another CPU.
        """
        usual = self.by_type.get(quantization.upper(), self.default)
        if measured is None:
            return usual
        return round(max(self.least, min(usual, 1 - self.growth * (1 - measured) - self.slack)), 4)


@cache
def tolerance() -> Tolerance:
    """The table of tolerances."""
    known = dict(_load("gate.toml")["tolerance"])
    general = {name: known.pop(name) for name in ("default", "least", "growth", "slack")}
    return Tolerance(known, **general)


@cache
def default_bounds() -> GateBounds:
    """What a type must keep where the user asks for nothing else."""
    return GateBounds(**_load("gate.toml")["bounds"])


def known_types() -> tuple[str, ...]:
    """What can be asked for, largest first."""
    return tuple(_load("gate.toml")["types"])


def tried_types() -> tuple[str, ...]:
    """What is tried where the user names none."""
    return tuple(_load("gate.toml")["tried"])


def parse_types(asked: str) -> tuple[str, ...]:
    """``q8_0,Q4_K_M`` in any case, each once, in the order asked. Raises UsageError ``gate.type``."""
    found: dict[str, None] = {}
    for name in (part.strip().upper() for part in asked.split(",") if part.strip()):
        if name not in known_types():
            raise UsageError("gate.type", found=name, known=", ".join(known_types()))
        found[name] = None
    if not found:
        raise UsageError("gate.type", found=asked, known=", ".join(known_types()))
    return tuple(found)


@cache
def built_in_texts() -> tuple[str, ...]:
    """The gate's own short texts, Chinese and English."""
    return tuple(text for group in _load("gate_texts.toml")["groups"] for text in group)


@cache
def _load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = tomllib.loads((resources.files("sampan") / "data" / name).read_text(encoding="utf-8"))
    return data
