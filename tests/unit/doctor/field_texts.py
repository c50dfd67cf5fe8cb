"""The samples of tests/data/doctor/field.toml."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sampan.doctor import data

FILE = Path(__file__).parents[2] / "data" / "doctor" / "field.toml"


class Sample(NamedTuple):
    """``target`` is a known profile's name or empty; ``others`` must be found as well, whatever their place.

    ``reports``: the public report of which this is the kind."""

    name: str
    target: str
    text: str
    first: str
    others: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()


_DATA = data.parse(FILE.read_text(encoding="utf-8"))
SAMPLES = tuple(
    Sample(
        each["name"],
        each.get("target", ""),
        each["text"],
        each["first"],
        tuple(each.get("others", ())),
        tuple(each.get("reports", ())),
    )
    for each in _DATA["sample"]
)
CHINESE = tuple((each["text"], each["first"]) for each in _DATA["chinese"])
