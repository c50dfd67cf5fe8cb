"""Vectors as bytes: checked, cut and encoded without numpy. Pure."""

from __future__ import annotations

import binascii
import math
import struct
import sys
from array import array

from sampan.gateway.engine import BadVectorError, EngineBrokenError

_FLOAT_BYTES = 4
_NORM_TOLERANCE = 0.01  # float16 rounding of a unit vector of 4096 numbers stays far below


def from_base64(text: str) -> bytes:
    """The packed floats of one base64 vector. Raises EngineBrokenError where it is none."""
    try:
        packed = binascii.a2b_base64(text)
    except binascii.Error as error:
        raise EngineBrokenError(f"vector is not base64: {error}") from error
    if not packed or len(packed) % _FLOAT_BYTES:
        raise EngineBrokenError(f"vector of {len(packed)} bytes")
    return packed


def to_base64(packed: bytes) -> str:
    """OpenAI's ``base64`` encoding: little-endian float32."""
    return binascii.b2a_base64(packed, newline=False).decode("ascii")


def to_floats(packed: bytes) -> array[float]:
    """The numbers of a packed little-endian float32 vector."""
    numbers = array("f")
    numbers.frombytes(packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def from_floats(numbers: array[float]) -> bytes:
    """Packed little-endian float32."""
    if sys.byteorder == "big":
        numbers = array("f", numbers)
        numbers.byteswap()
    return numbers.tobytes()


def check(packed: bytes, *, dimensions: int | None, normalized: bool) -> None:
    """Raises BadVectorError: a number not finite, a wrong length, a norm that is not one or is nothing."""
    size = len(packed) // _FLOAT_BYTES
    if dimensions is not None and size != dimensions:
        raise BadVectorError(f"{size} numbers instead of {dimensions}")
    norm = math.hypot(*struct.unpack(f"<{size}f", packed))  # not finite as soon as one number is not
    if not math.isfinite(norm):
        raise BadVectorError("numbers that are not finite")
    if norm == 0.0 or (normalized and abs(norm - 1.0) > _NORM_TOLERANCE):
        raise BadVectorError(f"length {norm:.4g} instead of 1")


def cut(packed: bytes, dimensions: int) -> bytes:
    """The first ``dimensions`` numbers, made a unit vector again."""
    numbers = to_floats(packed)[:dimensions]
    norm = math.hypot(*numbers)
    return from_floats(array("f", (number / norm for number in numbers)) if norm else numbers)


def cosine(one: bytes, other: bytes) -> float:
    """Their cosine; 0 where one has no length."""
    a, b = to_floats(one), to_floats(other)
    lengths = math.hypot(*a) * math.hypot(*b)
    dot = math.fsum(x * y for x, y in zip(a, b, strict=True))
    return max(-1.0, min(1.0, dot / lengths)) if lengths else 0.0
