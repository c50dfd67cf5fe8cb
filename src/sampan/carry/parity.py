"""Parity parts: as many lost or damaged parts as there are of them are computed from the others.

What is computed has the hash of the part that was cut, or it is not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from sampan import disk, i18n
from sampan.carry import field, parts
from sampan.carry.parts import Part, PartList
from sampan.errors import VerificationError
from sampan.spec.ports import Progress

_STRIPE_BYTES = 256 << 10


def make(path: Path, out: Path, cut: Sequence[Part], count: int, progress: Progress) -> tuple[Part, ...]:
    """Write ``count`` parity parts of the file whose parts are ``cut``, in one reading. Raises OSError."""
    if not count:
        return ()
    length, starts = cut[0].size, parts.boundaries(cut)
    factors = tuple(field.row(number, len(cut)) for number in range(count))
    finals = [out / parts.parity_name(path.name, number) for number in range(1, count + 1)]
    with path.open("rb", buffering=0) as whole, ExitStack() as stack:
        sinks = [_Sink(stack.enter_context(disk.new_file(final)), length) for final in finals]
        with progress.task(i18n.text("carry.parity"), starts[-1]) as task:
            for place in range(0, length, _STRIPE_BYTES):
                stripe = min(_STRIPE_BYTES, length - place)
                blocks = [_read(whole, starts[j] + place, min(stripe, one.size - place)) for j, one in enumerate(cut)]
                for sink, line in zip(sinks, factors, strict=True):
                    sink.write(field.combine(blocks, line), stripe)
                task.advance(sum(map(len, blocks)))
    return tuple(Part(final.name, length, sink.digest) for final, sink in zip(finals, sinks, strict=True))


def good(folder: Path, listed: PartList, progress: Progress) -> tuple[int, ...]:
    """Which parity parts are there and right, counted from 0. Raises OSError."""
    total = sum(part.size for part in listed.parity)
    with progress.task(i18n.text("carry.examining"), total) as task:
        return tuple(n for n, part in enumerate(listed.parity) if parts.is_right(folder / part.file, part, task))


def repair(folder: Path, listed: PartList, lost: Sequence[int], rows: Sequence[int], progress: Progress) -> None:
    """Write the ``lost`` parts (counted from 0) anew by as many parity parts ``rows``.

    Raises VerificationError (what comes out is not what was cut), OSError.
    """
    rows, present = rows[: len(lost)], [j for j in range(len(listed.parts)) if j not in lost]
    lines = tuple(field.row(row, len(listed.parts)) for row in rows)
    back = field.inverted(tuple(tuple(line[j] for j in lost) for line in lines))
    with ExitStack() as stack:
        here = [stack.enter_context(_opened(folder / listed.parts[j].file)) for j in present]
        parity = [stack.enter_context(_opened(folder / listed.parity[row].file)) for row in rows]
        wanted = [listed.parts[j] for j in lost]
        sinks = [_Sink(stack.enter_context(disk.new_file(folder / part.file)), part.size) for part in wanted]
        with progress.task(i18n.text("carry.repairing"), listed.parts[0].size) as task:
            for rest in _rests(here, parity, [[line[j] for j in present] for line in lines]):
                for sink, line in zip(sinks, back, strict=True):
                    sink.write(field.combine(rest, line), len(rest[0]))
                task.advance(len(rest[0]))
        for part, sink in zip(wanted, sinks, strict=True):
            if sink.digest != part.sha256:
                raise VerificationError("carry.repaired-wrong", part=part.file)


def _rests(
    here: Sequence[BinaryIO], parity: Sequence[BinaryIO], factors: Sequence[Sequence[int]]
) -> Iterator[list[bytes]]:
    """Stripe by stripe, what each parity part holds beyond the parts that are here."""
    while sums := [block for stream in parity if (block := stream.read(_STRIPE_BYTES))]:
        blocks, size = [stream.read(_STRIPE_BYTES) for stream in here], len(sums[0])
        rests = (
            field.combine(blocks, line, int.from_bytes(block, "little"))
            for line, block in zip(factors, sums, strict=True)
        )
        yield [rest.to_bytes(size, "little") for rest in rests]


class _Sink:
    """A part of ``size`` bytes that is being written, and its hash."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._left, self._seen = stream, size, hashlib.sha256()

    def write(self, value: int, stripe: int) -> None:
        data = value.to_bytes(stripe, "little")[: self._left]
        self._left -= len(data)
        self._stream.write(data)
        self._seen.update(data)

    @property
    def digest(self) -> str:
        return self._seen.hexdigest()


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")


def _read(stream: BinaryIO, place: int, size: int) -> bytes:
    if size <= 0:
        return b""
    stream.seek(place)
    return stream.read(size)
