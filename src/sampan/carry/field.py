"""Arithmetic of GF(256) on whole blocks: addition is XOR of long integers, multiplication a table of 256 bytes.

Both run inside the interpreter's own C code, so no library is needed where parts are joined. The code of parity is
Cauchy's: J. Blömer et al., "An XOR-Based Erasure-Resilient Coding Scheme", ICSI TR-95-048 (1995). Every square part
of its matrix can be inverted, so any parts that are lost follow from as many parity parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

ELEMENTS = 256
_POLYNOMIAL = 0x11D  # x^8 + x^4 + x^3 + x^2 + 1; 2 generates the field's other 255 elements
Matrix = tuple[tuple[int, ...], ...]


def _powers() -> tuple[int, ...]:
    found, power = [], 1
    for _ in range(ELEMENTS - 1):
        found.append(power)
        power <<= 1
        if power >= ELEMENTS:
            power ^= _POLYNOMIAL
    return tuple(found)


_EXP = _powers()
_LOG = {power: place for place, power in enumerate(_EXP)}


def multiply(left: int, right: int) -> int:
    """The product of two elements."""
    return _EXP[(_LOG[left] + _LOG[right]) % (ELEMENTS - 1)] if left and right else 0


def inverse(element: int) -> int:
    """Of any element but 0."""
    return _EXP[-_LOG[element] % (ELEMENTS - 1)]


@cache
def table(factor: int) -> bytes:
    """What ``bytes.translate`` multiplies by ``factor`` with."""
    return bytes(multiply(factor, element) for element in range(ELEMENTS))


def row(parity: int, count: int) -> tuple[int, ...]:
    """The factors of ``count`` parts in parity part ``parity``, both counted from 0; together at most 256."""
    return tuple(inverse((count + parity) ^ part) for part in range(count))


def combine(blocks: Sequence[bytes], factors: Sequence[int], start: int = 0) -> int:
    """``start`` and the blocks times their factors, added up; blocks are padded with zeros at their ends."""
    for block, factor in zip(blocks, factors, strict=True):
        start ^= int.from_bytes(block.translate(table(factor)), "little")
    return start


def inverted(matrix: Matrix) -> Matrix:
    """By Gauss and Jordan; the matrix is a square part of Cauchy's, so there is an inverse."""
    size = len(matrix)
    rows = [[*line, *(int(place == number) for place in range(size))] for number, line in enumerate(matrix)]
    for column in range(size):
        pivot = next(number for number in range(column, size) if rows[number][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        factor = inverse(rows[column][column])
        rows[column] = [multiply(factor, value) for value in rows[column]]
        for number in range(size):
            times = rows[number][column] if number != column else 0
            pairs = zip(rows[number], rows[column], strict=True)
            rows[number] = [value ^ multiply(times, other) for value, other in pairs]
    return tuple(tuple(line[size:]) for line in rows)
