from __future__ import annotations

import math
import struct

import pytest

from sampan.gateway import vectors
from sampan.gateway.engine import EngineBrokenError

LARGEST = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def pack(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def test_base64_goes_both_ways() -> None:
    packed = pack(0.5, -1.25, 3e-9)
    assert vectors.from_base64(vectors.to_base64(packed)) == packed
    assert list(vectors.to_floats(packed))[:2] == [0.5, -1.25]


@pytest.mark.parametrize("numbers", [(0.0,), (LARGEST,) * 64, (-LARGEST, LARGEST), (1e-45, 0.1)])
def test_finite_vectors_pass(numbers: tuple[float, ...]) -> None:
    assert vectors.is_finite(pack(*numbers))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_number_that_is_not_finite_is_found(bad: float, place: int) -> None:
    numbers = [0.1, LARGEST, -0.3]
    numbers[place] = bad
    assert not vectors.is_finite(pack(*numbers))


def test_opposite_infinities_do_not_hide_each_other() -> None:
    assert not vectors.is_finite(pack(math.inf, -math.inf))


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "QUJDREU="])
def test_what_is_no_vector_is_an_engine_fault(text: str) -> None:
    with pytest.raises(EngineBrokenError):
        vectors.from_base64(text)
