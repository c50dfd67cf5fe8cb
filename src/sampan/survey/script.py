"""The survey script as data: its text, and the numbered list of x86 features that it carries."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources


@cache
def text() -> str:
    """``data/survey/survey.sh``, as it is run on the target."""
    return (resources.files("sampan") / "data/survey/survey.sh").read_text(encoding="utf-8")


@cache
def x86_flags() -> tuple[str, ...]:
    """The place of a name is the number of its bit. The script is the only place where the list is kept."""
    found = re.search(r"^X86_FLAGS='([^']+)'", text(), re.MULTILINE)
    return tuple(found[1].split()) if found else ()


def unpack_flags(digits: str) -> frozenset[str]:
    """The names whose bits are set, the first bit being the highest of the first digit. Raises ValueError."""
    bits = "".join(f"{int(digit, 16):04b}" for digit in digits)
    return frozenset(name for name, bit in zip(x86_flags(), bits, strict=False) if bit == "1")
