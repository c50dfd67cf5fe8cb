"""Vectors as bytes: checked and encoded without numpy. Pure."""

from __future__ import annotations

import binascii
import math
import sys
from array import array

from sampan.gateway.engine import EngineBrokenError

_FLOAT_BYTES = 4


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


def is_finite(packed: bytes) -> bool:
    """True where every number is finite.

    The sum decides: float32 values cannot overflow a double, and no NaN or infinity ever sums to a finite number.
    """
    return math.isfinite(sum(to_floats(packed)))
