"""What the loader and the start of a program run, followed through calls that no test of the CPU guards."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sampan.audit.instructions import body
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.body import Body
from sampan.audit.instructions.flow import Flow
from sampan.audit.instructions.functions import Functions
from sampan.audit.instructions.imports import Imports
from sampan.audit.instructions.knowledge import Knowledge
from sampan.audit.instructions.layouts import INIT_ARRAY, PREINIT_ARRAY

_DT_INIT, _MAX_ARRAY = 12, 1 << 20
_NEAR_START = 3  # calls from the entry within which an address that is taken is run: main is handed to libc


@dataclass
class Code:
    """One open file, ready to be followed."""

    binary: Binary
    functions: Functions
    imports: Imports
    flow: Flow
    knowledge: Knowledge
    bodies: dict[int, Body] = field(default_factory=dict)
    blocks: int = 0  # that were read so far
    reached: set[str] = field(default_factory=set)  # the names of limits

    def body(self, start: int) -> Body:
        """The function that is entered at ``start``; kept, since many things ask."""
        if start not in self.bodies:
            index = self.functions.index(start)
            bounds = self.functions.range(index) if index >= 0 else (start, start)
            limits = self.knowledge.limits
            limit = min(limits.blocks, limits.total - self.blocks)
            found = self.bodies[start] = body.read(start, bounds, self.flow, self.ends, limit)
            self.blocks += len(found.blocks)
            if len(found.blocks) >= limit:
                self.reached.add("blocks" if limit == limits.blocks else "total")
        return self.bodies[start]

    def ends(self, target: int) -> bool:
        """Whether a call to ``target`` never comes back."""
        slot = self.flow.import_of(target)
        return slot is not None and self.knowledge.ends(self.imports.name(slot))

    def resolve(self, target: int) -> int:
        """Where a call really leads within this file, 0 where it leaves it."""
        slot = self.flow.import_of(target)
        return target if slot is None else self.imports.target(slot)


def roots(code: Code, *, program: bool) -> dict[int, str]:
    """What is run without being asked for: address and what it is called. Source: ELF gABI, chapter 5,
    "Initialization and Termination Functions"; glibc elf/dl-init.c; GNU IFUNC."""
    binary = code.binary
    found: dict[int, str] = {}
    for name, section, tag, size_tag in (
        (".preinit_array", PREINIT_ARRAY, 32, 33),
        (".init_array", INIT_ARRAY, 25, 27),
    ):
        address, size = binary.array(section, tag, size_tag)
        for slot in range(address, address + min(size, _MAX_ARRAY, binary.room(address)) // 8 * 8, 8):
            found.setdefault(code.imports.target(slot), name)
    found.setdefault(binary.dynamic.get(_DT_INIT, 0), ".init")
    for address in code.imports.resolvers:
        found.setdefault(address, "IFUNC")
    if program and binary.entry:
        found.setdefault(binary.entry, "entry")
        found.update(dict.fromkeys(_handed_over(code, binary.entry), "main"))
    return {address: name for address, name in found.items() if binary.span_at(address)}


def _handed_over(code: Code, entry: int) -> set[int]:
    """Functions whose addresses the code right behind the entry takes: ``main`` is among them."""
    found: set[int] = set()
    seen: set[int] = set()
    todo = [(entry, 0)]
    while todo:
        start, depth = todo.pop()
        if start in seen or depth > _NEAR_START or not code.binary.span_at(start):
            continue
        seen.add(start)
        own = code.body(start)
        for block in own.blocks:
            found |= {address for address in code.flow.addresses(block) if address in _starts(code, address)}
        todo += [(code.resolve(target), depth + 1) for target, _ in own.calls]
    return found


def _starts(code: Code, address: int) -> tuple[int, ...]:
    index = code.functions.index(address)
    return (code.functions.range(index)[0],) if index >= 0 else ()


def started(code: Code, from_roots: dict[int, str]) -> dict[int, str]:
    """Every function that a root leads to without a guard, nearest first, and the root's name."""
    limits = code.knowledge.limits
    found: dict[int, str] = {}
    todo = deque((address, name, 0) for address, name in from_roots.items())
    while todo and len(found) < limits.functions:
        address, name, depth = todo.popleft()
        if address in found or not code.binary.span_at(address):
            continue
        found[address] = name
        calls = [
            (code.resolve(target), name, depth + 1) for target, guarded in code.body(address).calls if not guarded
        ]
        if depth < limits.depth:
            todo += calls
        elif any(target not in found and code.binary.span_at(target) for target, _, _ in calls):
            code.reached.add("depth")
    if todo:
        code.reached.add("functions")
    return found
