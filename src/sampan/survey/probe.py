"""The probe: features that a kernel reports and a CPU cannot execute, and the reverse.

Its source is ``data/survey/probe/``: one C file and a table per architecture. The place of a line in the table is the
number of its feature in a survey's block.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources

from sampan.spec.target import CpuFacts, ProbeFacts

ARCHITECTURES = ("aarch64", "loongarch64", "x86_64")
FORM, NOT_DONE = "1", "0"
_LETTERS = {"r": "ran", "i": "illegal", "h": "hung", "d": "died", "u": "untried"}
_ENTRY = re.compile(r"^TRY\((\w+),", re.MULTILINE)
_LINE = re.compile(r"^(\w+) (ran|illegal|hung|died|untried)$", re.MULTILINE)


@cache
def sources() -> Mapping[str, str]:
    """The program's source: name to text, the C file first."""
    folder = resources.files("sampan") / "data/survey/probe"
    names = ("probe.c", *(f"{arch}.h" for arch in ARCHITECTURES))
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def names(arch: str) -> tuple[str, ...]:
    """The features that are tried there, in the table's order; none where there is no table."""
    return tuple(_ENTRY.findall(sources().get(f"{arch}.h", "")))


def printed(output: str) -> dict[str, str]:
    """What the program printed: feature to outcome. Raises ValueError where it is not the program's output."""
    if not output.startswith(f"sampan-probe {FORM} "):
        raise ValueError(output[:80])
    return dict(_LINE.findall(output))


def packed(value: str, arch: str) -> dict[str, str] | None:
    """The block's field: form, then a letter per feature; None for another form.

    A newer table has features at its end that are not known here: they are left out. Raises ValueError.
    """
    form, _, letters = value.partition(",")
    if form != FORM:
        return None
    if not letters or set(letters) - set(_LETTERS):
        raise ValueError(f"pr={value}")
    return {name: _LETTERS[letter] for name, letter in zip(names(arch), letters, strict=False)}


def applied(cpu: CpuFacts, outcome: Mapping[str, str]) -> CpuFacts:
    """The CPU with what the probe found, and without the features that it does not really have."""

    def those(*states: str) -> tuple[str, ...]:
        return tuple(sorted(name for name, state in outcome.items() if state in states))

    claimed, dead = frozenset(cpu.features), those("illegal", "hung")
    found = ProbeFacts(
        ran=those("ran"),
        illegal=those("illegal"),
        hung=those("hung"),
        unclear=those("died", "untried"),
        false_claims=tuple(name for name in dead if name in claimed),
        unclaimed=tuple(name for name in those("ran") if cpu.features_known and name not in claimed),
    )
    return replace(cpu, features=tuple(name for name in cpu.features if name not in dead), probe=found)
