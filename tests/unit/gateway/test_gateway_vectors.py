from __future__ import annotations

import math
import struct

import pytest

from sampan.gateway import vectors
from sampan.gateway.engine import BadVectorError, EngineBrokenError

LARGEST = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def pack(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def test_base64_goes_both_ways() -> None:
    packed = pack(0.5, -1.25, 3e-9)
    assert vectors.from_base64(vectors.to_base64(packed)) == packed
    assert list(vectors.to_floats(packed))[:2] == [0.5, -1.25]


def check(*numbers: float, normalized: bool = False, dimensions: int | None = None) -> None:
    vectors.check(pack(*numbers), dimensions=dimensions, normalized=normalized)


@pytest.mark.parametrize("numbers", [(LARGEST,) * 64, (-LARGEST, LARGEST), (1e-45, 0.1)])
def test_finite_vectors_pass(numbers: tuple[float, ...]) -> None:
    check(*numbers)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_number_that_is_not_finite_is_found(bad: float, place: int) -> None:
    numbers = [0.1, LARGEST, -0.3]
    numbers[place] = bad
    with pytest.raises(BadVectorError, match="finite"):
        check(*numbers)


def test_opposite_infinities_do_not_hide_each_other() -> None:
    with pytest.raises(BadVectorError, match="finite"):
        check(math.inf, -math.inf)


def test_vectors_of_no_length_or_another_than_one_are_none() -> None:
    check(0.6, 0.8, normalized=True)
    for numbers, normalized in (((0.0, 0.0), False), ((0.6, 0.7), True)):
        with pytest.raises(BadVectorError, match="length"):
            check(*numbers, normalized=normalized)
    with pytest.raises(BadVectorError, match="2 numbers instead of 3"):
        check(0.6, 0.8, dimensions=3)


def test_a_cut_vector_is_a_unit_vector_of_the_same_direction() -> None:
    cut = list(vectors.to_floats(vectors.cut(pack(0.3, 0.4, 0.5), 2)))
    assert cut == pytest.approx([0.6, 0.8])
    assert vectors.cosine(pack(3, 4), vectors.cut(pack(0.3, 0.4, 0.5), 2)) == pytest.approx(1.0)
    assert vectors.cosine(pack(0, 0), pack(1, 0)) == 0.0


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "QUJDREU="])
def test_what_is_no_vector_is_an_engine_fault(text: str) -> None:
    with pytest.raises(EngineBrokenError):
        vectors.from_base64(text)
