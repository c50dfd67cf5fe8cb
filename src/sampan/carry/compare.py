"""Where a file over there begins to differ from the one here: by blocks, and finer at the first that differs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sampan.carry.here import Here
from sampan.carry.remote import Remote

UNIT, SUB = 4 << 20, 256 << 10  # bytes: of a block that is compared, and of the finer ones where it differs


@dataclass(frozen=True)
class Comparison:
    """Of a file here with the one at ``path`` over there. Both methods raise as ``Remote`` does."""

    here: Here
    remote: Remote
    path: str

    async def agreed(self, there: int, known: int) -> int:
        """How many of the ``there`` bytes are right, to the nearest SUB below the first difference.

        ``known``: how many were found right before.
        """
        bad = await self._first_bad(there, UNIT, range(min(known, there) // UNIT, math.ceil(there / UNIT)))
        if bad is None:
            return there
        inner = await self._first_bad(there, SUB, range(bad * UNIT // SUB, (bad + 1) * UNIT // SUB))
        return bad * UNIT if inner is None else inner * SUB

    async def _first_bad(self, there: int, unit: int, blocks: range) -> int | None:
        first, count = blocks.start, min(len(blocks), math.ceil(there / unit) - blocks.start)
        if count <= 0:
            return None
        found = await self.remote.blocks(self.path, unit, first, count)
        wanted = self.here.blocks(unit, first, count, there)
        differing = (first + place for place, digest in enumerate(wanted) if found[place : place + 1] != [digest])
        return next(differing, None)

    async def differing(self) -> Iterator[tuple[int, int]]:
        """Beginning and end in bytes of every block that is not as it is here."""
        size = self.here.size
        count = math.ceil(size / UNIT)
        found, wanted = await self.remote.blocks(self.path, UNIT, 0, count), self.here.blocks(UNIT, 0, count, size)
        bad = (number for number, digest in enumerate(wanted) if found[number : number + 1] != [digest])
        return ((number * UNIT, min((number + 1) * UNIT, size)) for number in bad)
