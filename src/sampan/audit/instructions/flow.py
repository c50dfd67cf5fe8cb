"""Blocks of code and where they lead: what the reader of one architecture gives to ``reach``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

JUMP, BRANCH, CALL, END, ON = "jump", "branch", "call", "end", "on"


@dataclass(frozen=True)
class Block:
    """Straight-line code from ``start`` up to ``end``; ``last`` is its last instruction.

    ``kind``: JUMP (to ``target``), BRANCH (to ``target`` or on), CALL (``target``, then on), ON (a call through a
    register: on), END (return, trap or a jump that cannot be followed).
    """

    start: int
    end: int
    last: int
    kind: str
    target: int | None = None


class Flow(Protocol):
    """One architecture's reader."""

    def block(self, start: int) -> Block | None:
        """The block that begins at ``start``, None where there is no code."""

    def tests_cpu(self, block: Block, function: int) -> bool:
        """Whether the BRANCH at the block's end depends on what the CPU can do, as far as the code shows."""

    def import_of(self, target: int) -> int | None:
        """The address of the pointer that a linkage stub at ``target`` jumps through, None if it is none."""

    def addresses(self, block: Block) -> tuple[int, ...]:
        """Addresses of code that the block computes."""


@dataclass(frozen=True)
class Site:
    """A place that calls, jumps to or takes the address of ``target``."""

    at: int
    target: int
