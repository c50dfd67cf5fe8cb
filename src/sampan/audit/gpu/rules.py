"""What is known of drivers, toolkits and cards, read from ``data/gpu.toml``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Toolkit:
    """Per major version: the least driver, and the least compute capability (61 for 6.1)."""

    driver: str
    capability: int


@dataclass(frozen=True)
class Ptx:
    """Per ISA version: the toolkit's major version, and the driver branch that first compiles it, "" if not known."""

    toolkit: int
    driver: str


@dataclass(frozen=True)
class GpuRules:
    """All of the data file, typed. ``cards``: compute capability by a part of the card's name."""

    ptx: Mapping[str, Ptx]
    toolkit: Mapping[int, Toolkit]
    sonames: frozenset[str]
    zstd_driver: str
    cards: Mapping[str, int]


@cache
def load() -> GpuRules:
    """The rules that travel with this version."""
    data = tomllib.loads((resources.files("sampan") / "data" / "gpu.toml").read_text(encoding="utf-8"))
    toolkits = {
        int(major): Toolkit(one["driver"], capability(one["capability"]))
        for major, one in data["toolkit"].items()
        if major != "source"
    }
    return GpuRules(
        ptx={
            isa: Ptx(int(one["cuda"].split(".")[0]), one.get("driver", ""))
            for isa, one in data["ptx"].items()
            if isa != "source"
        },
        toolkit=toolkits,
        sonames=frozenset(data["sonames"]["names"]),
        zstd_driver=data["zstd"]["driver"],
        cards={name: capability(text) for name, text in data["cards"].items() if name != "source"},
    )


def least_driver(isa: str, known: GpuRules) -> tuple[str, bool]:
    """The driver branch that PTX of that version needs, and whether it is said of that very version.

    Where it is not, the newest branch among the earlier versions: the driver must be at least that new, and nobody
    knows how much newer.
    """
    said = known.ptx[isa].driver if isa in known.ptx else ""
    earlier = (one.driver for version, one in known.ptx.items() if one.driver and older(version, isa))
    return said or max(earlier, key=_numbers, default=""), bool(said)


def capability(text: str) -> int:
    """``6.1`` -> 61, ``12.0`` -> 120. Raises ValueError."""
    major, _, minor = text.partition(".")
    return int(major) * 10 + int(minor or 0)


def capability_of(name: str, known: GpuRules) -> int | None:
    """By the card's name; the longest that fits counts (``Tesla P40`` is not a ``Tesla P4``)."""
    words = f" {name.replace('-', ' ')} "
    fitting = [card for card in known.cards if f" {card} " in words or words.strip().endswith(f" {card}")]
    return known.cards[max(fitting, key=len)] if fitting else None


def older(driver: str, wanted: str) -> bool:
    """Whether ``driver`` is older than ``wanted``; both such as ``535.161.07`` or ``550``."""
    return _numbers(driver) < _numbers(wanted)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in version.split(".") if part.isdecimal())
