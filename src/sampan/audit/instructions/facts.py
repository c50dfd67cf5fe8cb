"""What a census gives: pure values, small enough to be cached and to travel between processes."""

from __future__ import annotations

from dataclasses import dataclass

START = "start"  # the loader or the program's own start leads to it
UNGUARDED = "unguarded"  # no test of the CPU before it, as far as can be told
GUARDED = "guarded"  # behind a test of the CPU, in a variant, or never executed without the feature


@dataclass(frozen=True)
class Use:
    """One CPU feature in one class. ``address``, ``offset`` and ``function`` are those of the first instruction.

    ``root`` names what leads there (``init_array``, ``main``…) for START, and what guards it for GUARDED.
    """

    feature: str
    reach: str
    count: int
    address: int
    offset: int
    function: str
    root: str = ""


@dataclass(frozen=True)
class CodeFacts:
    """Every feature that a file's code uses, by class. ``code_bytes`` is how much was looked at; ``limits``: how far
    code was followed, where it was not followed to its end (``data/isa/guards.toml``), as ``NAME NUMBER``."""

    uses: tuple[Use, ...] = ()
    code_bytes: int = 0
    limits: tuple[str, ...] = ()
