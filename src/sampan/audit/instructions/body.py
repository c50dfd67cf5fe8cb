"""One function's blocks, and which of them run only after a test of the CPU.

A block is guarded where it is reached from one side of such a test and not from the other: what comes after both
sides have met again runs on every CPU.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from sampan.audit.instructions import flow
from sampan.audit.instructions.flow import Block, Flow

_MAX_GUARDS = 64
_MAX_KINDS = 32
_MAX_WORK = 1 << 16  # blocks that are walked, times guards or kinds: fewer of these in a huge function


@dataclass(frozen=True)
class Body:
    """``calls``: (target, guarded) of every call and of every jump out of the function."""

    blocks: tuple[Block, ...]
    guarded: frozenset[int]  # starts of blocks
    calls: tuple[tuple[int, bool], ...]

    def open_blocks(self) -> tuple[Block, ...]:
        """Those that run whatever the CPU is."""
        return tuple(block for block in self.blocks if block.start not in self.guarded)

    def block_of(self, address: int) -> int | None:
        """The start of the block that ``address`` is in."""
        after = bisect_right(self.blocks, address, key=lambda block: block.start)
        block = self.blocks[after - 1] if after else None
        return block.start if block and address < block.end else None


def read(start: int, bounds: tuple[int, int], reader: Flow, ends: Callable[[int], bool], limit: int) -> Body:
    """The function that is entered at ``start`` and lies within ``bounds``. ``ends`` knows calls without return."""
    blocks, after = _blocks(start, bounds, reader, ends, limit)
    guarded = _guarded(blocks, after, reader, start)
    calls = []
    for at, block in blocks.items():
        leaves = block.target is not None and not bounds[0] <= block.target < bounds[1]
        if block.target is not None and (block.kind == flow.CALL or leaves):
            calls.append((block.target, at in guarded))
    return Body(tuple(blocks[at] for at in sorted(blocks)), guarded, tuple(calls))


_Ways = dict[int, tuple[int, ...]]  # by block: where it leads on within the function


def _blocks(
    start: int, bounds: tuple[int, int], reader: Flow, ends: Callable[[int], bool], limit: int
) -> tuple[dict[int, Block], _Ways]:
    blocks: dict[int, Block] = {}
    after: _Ways = {}
    todo = [start]
    while todo and len(blocks) < limit:
        at = todo.pop()
        block = reader.block(at) if at not in blocks else None
        if block is not None:
            blocks[at] = block
            after[at] = tuple(one for one in _next(block, ends) if bounds[0] <= one < bounds[1])
            todo += after[at]
    for at, following in pairwise(sorted(blocks)):
        if following < blocks[at].end:  # another block begins in the midst: this one runs on into it
            blocks[at] = Block(at, following, at, flow.JUMP, following)
            after[at] = (following,)
    return blocks, after


def _next(block: Block, ends: Callable[[int], bool]) -> tuple[int, ...]:
    """Where the code goes on within the function."""
    if block.kind == flow.JUMP and block.target is not None:
        return (block.target,)
    if block.kind == flow.BRANCH and block.target is not None:
        return block.end, block.target
    if block.kind == flow.CALL and block.target is not None:
        return () if ends(block.target) else (block.end,)
    return (block.end,) if block.kind == flow.ON else ()


def _guarded(blocks: dict[int, Block], after: _Ways, reader: Flow, start: int) -> frozenset[int]:
    tests = [at for at, block in blocks.items() if block.kind == flow.BRANCH and reader.tests_cpu(block, start)]
    tests = tests[: _affordable(_MAX_GUARDS, after)]
    guarded: set[int] = set()
    sides: dict[int, set[tuple[int, int]]] = {}  # by block: the sides of tests that lead straight to it
    for at in tests:
        ways = (blocks[at].end, blocks[at].target or 0)
        guarded |= _reached(ways[0], {at}, after) ^ _reached(ways[1], {at}, after)
        if len(tests) < 2:
            break
        near = [_reached(one, set(tests), after) for one in ways]
        for own, way in enumerate(ways):
            for block in near[own] - near[1 - own]:
                sides.setdefault(block, set()).add((at, way))
    return frozenset(guarded | _behind(start, sides, after))


def _affordable(most: int, after: _Ways) -> int:
    return max(1, min(most, _MAX_WORK // max(1, len(after))))


def _behind(start: int, sides: dict[int, set[tuple[int, int]]], after: _Ways) -> set[int]:
    """Blocks to which several tests lead, each by one of its sides, and nothing else does: a test within a loop."""
    found: set[int] = set()
    for kind in sorted({frozenset(one) for one in sides.values()}, key=sorted)[: _affordable(_MAX_KINDS, after)]:
        open_ways = {at: tuple(way for way in ways if (at, way) not in kind) for at, ways in after.items()}
        reached = _reached(start, set(), open_ways)
        found |= {block for block, one in sides.items() if one == kind and block not in reached}
    return found


def _reached(start: int, without: set[int], after: _Ways) -> set[int]:
    """All blocks on the ways from ``start`` that do not lead on through ``without``."""
    found: set[int] = set()
    todo = [start]
    while todo:
        at = todo.pop()
        if at not in found and at not in without:
            found.add(at)
            todo += after.get(at, ())
    return found
