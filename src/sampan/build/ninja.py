"""Reading what ninja prints while it works."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)")


@dataclass(frozen=True)
class Step:
    """``done`` of ``total`` edges; ``what`` is the file at hand, without folders."""

    done: int
    total: int
    what: str


def parse_step(line: str) -> Step | None:
    """One line of ninja's output; None where it is not a step."""
    match = _STEP.match(line)
    if match is None:
        return None
    words = match[3].split()
    what = words[-1].rsplit("/", 1)[-1] if words else ""
    return Step(int(match[1]), int(match[2]), what.removesuffix(".o"))
