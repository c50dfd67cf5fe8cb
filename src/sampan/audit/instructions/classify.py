"""Sort what was found into the three classes: reached at start, unguarded, guarded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from sampan.audit.instructions import callers, reach
from sampan.audit.instructions.body import Body
from sampan.audit.instructions.facts import GUARDED, START, UNGUARDED, Use
from sampan.audit.instructions.finds import Find, Finder, Tally
from sampan.audit.instructions.layouts import MAX_ROWS
from sampan.audit.instructions.reach import Code

TEST = "test of the CPU"
_NO_BODY = Body((), frozenset(), ())


class Classifier:
    """One file. ``hits``: the finds by the index of their function; ``more``: those of functions that were too many
    to be told apart."""

    def __init__(
        self, code: Code, hits: Mapping[int, Sequence[Find]], finder: Finder, more: Sequence[Find] = ()
    ) -> None:
        self.code = code
        self.hits = hits
        self.finder = finder
        self.more = more
        self.few = len(hits) <= code.knowledge.limits.analysed
        self.tally = Tally()

    def uses(self, *, program: bool) -> tuple[Use, ...]:
        """Uses by class and feature, in their order."""
        indices = sorted(self.hits)
        unclear = [index for index in indices if self._unclear(index)]
        begun = self._begun(unclear, program=program)
        excuses = self._excuses(unclear)
        for index in indices:
            if self._body(index).guarded or index in begun:
                finds: Iterable[Find] = self.finder.each(*self.code.functions.range(index))
            else:
                finds = self.hits[index]
            found = tuple(finds)
            excuse = excuses.get(index, "")
            tested = _tested(self._body(index), found)
            for find in found:
                own = excuse or (TEST if tested.issuperset(find.features) else "")
                reached, root = self._class(find, self._body(index), own, begun.get(index, ()))
                self.tally.count(reached, find, root)
        for find in self.more:
            self.tally.count(UNGUARDED, find, "")
        return self.tally.uses(self.code.binary, self.code.functions)

    def limits(self) -> tuple[str, ...]:
        """Those that ``uses`` has reached, with their numbers."""
        known = asdict(self.code.knowledge.limits)
        reached = self.code.reached | ({"analysed"} if not self.few else set())
        said = [f"{name} {known[name]}" for name in known if name in reached]
        return (*said, f"tables {MAX_ROWS}") if self.code.binary.cut else tuple(said)

    def _body(self, index: int) -> Body:
        """The function as entered at its first instruction; empty where there are too many to read."""
        return self.code.body(self.code.functions.range(index)[0]) if self.few else _NO_BODY

    def _unclear(self, index: int) -> bool:
        """Whether more than the function itself is needed to judge its finds."""
        if all(find.harmless for find in self.hits[index]):
            return False
        body = self._body(index)
        if not body.guarded:
            return True
        finds = self.finder.each(*self.code.functions.range(index))
        return any(not find.harmless and body.block_of(find.address) not in body.guarded for find in finds)

    def _begun(self, indices: list[int], *, program: bool) -> dict[int, list[tuple[Body, str]]]:
        """For each of these functions: how it is entered from a start, and from which."""
        wanted = set(indices)
        found: dict[int, list[tuple[Body, str]]] = {}
        if wanted:
            started = reach.started(self.code, reach.roots(self.code, program=program))
            for address, root in started.items():
                index = self.code.functions.index(address)
                if index in wanted:
                    found.setdefault(index, []).append((self.code.body(address), root))
        return found

    def _excuses(self, indices: list[int]) -> dict[int, str]:
        """What, outside of the functions themselves, guards them."""
        functions, knowledge = self.code.functions, self.code.knowledge
        named = {index: knowledge.variant(functions.name(functions.range(index)[0])) for index in indices}
        rest = [index for index in indices if not named[index]]
        if len(rest) > knowledge.limits.callers:
            self.code.reached.add("callers")
            return named
        return {**named, **callers.wrapped(self.code, rest, self.finder.sites)}

    @staticmethod
    def _class(find: Find, body: Body, excuse: str, begun: Iterable[tuple[Body, str]]) -> tuple[str, str]:
        """(class, what leads there or guards it)."""
        if find.harmless:
            return GUARDED, find.harmless
        for entered, root in begun:
            block = entered.block_of(find.address)
            if block is not None and block not in entered.guarded:
                return START, root
        block = body.block_of(find.address)
        if block is not None and block in body.guarded:
            return GUARDED, TEST
        return (GUARDED, excuse) if excuse else (UNGUARDED, "")


def _tested(body: Body, finds: Iterable[Find]) -> frozenset[str]:
    """Features that the function itself guards somewhere: its other uses are behind the same test too, often by way
    of a variable that no analysis of branches sees (a loop that is entered only after the test)."""
    guarded = (find for find in finds if body.block_of(find.address) in body.guarded)
    return frozenset(feature for find in guarded for feature in find.features)
