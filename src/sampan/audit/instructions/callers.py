"""Functions that are called, or chosen, only behind a test of the CPU."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

import numpy as np

from sampan.audit.instructions.arrays import distinct
from sampan.audit.instructions.layouts import Array
from sampan.audit.instructions.reach import Code

_ROUNDS = 3  # callers of callers
_MAX_SITES = 64  # a function that is called from more places is no chosen one
SiteFinder = Callable[[Array], tuple[Array, Array]]


def wrapped(code: Code, indices: Iterable[int], sites: SiteFinder) -> dict[int, str]:
    """Those functions that nothing but guarded code calls or takes the address of, by index, and how it is guarded.

    A function that other files can call, or whose address stands in a table, may run at any time. ``sites`` gives
    (address, target) of every place in the code that leads to one of the functions it is asked for.
    """
    open_to_all = _open(code)
    known: dict[int, list[tuple[int, str]]] = {}  # (index of the function that leads here, guard or nothing)
    wanted = {index for index in indices if index not in open_to_all}
    for _ in range(_ROUNDS):
        fresh = sorted(wanted - set(known))
        if not fresh or len(fresh) > code.knowledge.limits.analysed:
            break
        at, target = sites(code.functions.starts[fresh])
        for index in fresh:
            mine = at[target == code.functions.starts[index]]
            known[index] = [_site(code, int(one)) for one in mine[: _MAX_SITES + 1]]
        leading = {caller for index in fresh for caller, guard in known[index] if not guard}
        wanted |= {index for index in leading if index not in open_to_all}
    return _settle(known)


def _settle(known: dict[int, list[tuple[int, str]]]) -> dict[int, str]:
    """A function is guarded when every place that leads to it is, or lies in a function that is."""
    found: dict[int, str] = {}
    changed = True
    while changed:
        changed = False
        for index, places in known.items():
            if index in found or not 0 < len(places) <= _MAX_SITES:
                continue
            guards = [guard or found.get(caller, "") for caller, guard in places if caller != index]
            if guards and all(guards):
                found[index] = guards[0]
                changed = True
    return found


def _site(code: Code, address: int) -> tuple[int, str]:
    index = code.functions.index(address)
    start = code.functions.range(index)[0]
    if start in code.imports.resolvers:
        return index, "IFUNC"
    variant = code.knowledge.variant(code.functions.name(start))
    if variant:
        return index, variant
    body = code.body(start)
    at = bisect_right(body.blocks, address, key=lambda block: block.start) - 1
    guarded = at >= 0 and address < body.blocks[at].end and body.blocks[at].start in body.guarded
    return index, "called only after a test of the CPU" if guarded else ""


def _open(code: Code) -> frozenset[int]:
    """Functions that are exported or stand in a table of addresses."""
    relocations = code.binary.relocations
    pointed = relocations["addend"][relocations["kind"] == code.imports.relative]
    exported = [
        table["value"][(table["index"] != 0) & (table["info"] >> 4 != 0)].astype(np.int64)
        for table in (symbols.table for symbols in code.binary.symbols[:1])
    ]
    addresses = distinct(np.concatenate((pointed, *exported)))
    at = np.searchsorted(code.functions.starts, addresses)
    at = at[at < len(code.functions.starts)]
    there = code.functions.starts[at]
    return frozenset(at[np.isin(there, addresses)].tolist())
