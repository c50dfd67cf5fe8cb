"""Protocol buffers read lazily from a mapped file: fields are stepped over, not copied.

Why no library: protobuf's own parses a message whole, so a 2 GB ONNX file costs 2 GB, and each schema has to be
compiled. Format: protobuf.dev/programming-guides/encoding. A message that leads out of itself raises WireError.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass

Data = bytes | mmap.mmap

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_FIELDS = 4_000_000  # of one message; the largest graphs have some ten thousand nodes


class WireError(ValueError):
    """The bytes are no sound message."""


@dataclass(frozen=True)
class Span:
    """``data[begin:end]``, a message or text inside a file."""

    data: Data
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def bytes(self) -> bytes:
        """A copy of it."""
        return bytes(self.data[self.begin : self.end])

    def text(self, longest: int = 4096) -> str:
        """It as UTF-8, damage replaced. Raises WireError where it is longer than any name."""
        if len(self) > longest:
            msg = f"text of {len(self)} bytes"
            raise WireError(msg)
        return self.bytes().decode("utf-8", "replace")


def fields(span: Span) -> Iterator[tuple[int, int | Span]]:
    """(number, value) of each field: an int for a varint or fixed number, a Span for all that has a length."""
    at = span.begin
    for _ in range(_MOST_FIELDS):
        if at == span.end:
            return
        key, at = varint(span.data, at, span.end)
        number, kind = key >> 3, key & 7
        if number == 0:
            msg = "field number 0"
            raise WireError(msg)
        if kind == _VARINT:
            value, at = varint(span.data, at, span.end)
            yield number, value
        else:
            size, at = _size(span, kind, at)
            if size > span.end - at:
                msg = f"field {number} of {size} bytes ends after its message"
                raise WireError(msg)
            yield number, Span(span.data, at, at + size)
            at += size
    msg = "too many fields"
    raise WireError(msg)


def _size(span: Span, kind: int, at: int) -> tuple[int, int]:
    if kind == _BYTES:
        return varint(span.data, at, span.end)
    if kind in (_FIXED64, _FIXED32):
        return (8 if kind == _FIXED64 else 4), at
    msg = f"unknown wire type {kind}"
    raise WireError(msg)


def varint(data: Data, at: int, end: int) -> tuple[int, int]:
    """The number at ``at`` and where the next thing begins. Raises WireError."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    msg = "a number without an end"
    raise WireError(msg)


def signed(value: int) -> int:
    """A varint as int64."""
    return value - (1 << 64) if value >> 63 else value


def numbers(value: int | Span) -> list[int]:
    """A repeated integer: one unpacked, or all packed."""
    if isinstance(value, int):
        return [signed(value)]
    found, at = [], value.begin
    while at < value.end:
        number, at = varint(value.data, at, value.end)
        found.append(signed(number))
    return found


@dataclass(frozen=True)
class Message:
    """The fields of one message by number, in their order."""

    values: dict[int, list[int | Span]]

    def spans(self, number: int) -> list[Span]:
        """Every value of the field that has a length."""
        return [value for value in self.values.get(number, ()) if isinstance(value, Span)]

    def integer(self, number: int, default: int = 0) -> int:
        """The field's last number, as the format wants it."""
        found = [value for value in self.values.get(number, ()) if isinstance(value, int)]
        return found[-1] if found else default

    def text(self, number: int, longest: int = 4096) -> str:
        """The field's last text, empty where there is none."""
        found = self.spans(number)
        return found[-1].text(longest) if found else ""

    def integers(self, number: int) -> list[int]:
        """A repeated integer, packed or not."""
        return [each for value in self.values.get(number, ()) for each in numbers(value)]

    def messages(self, *path: int) -> Iterator[Message]:
        """The messages found by going down these field numbers."""
        for span in self.spans(path[0]):
            inner = message(span)
            if len(path) == 1:
                yield inner
            else:
                yield from inner.messages(*path[1:])


def message(span: Span) -> Message:
    """Read one message; what lies within it is read when asked for. Raises WireError."""
    values: dict[int, list[int | Span]] = {}
    for number, value in fields(span):
        values.setdefault(number, []).append(value)
    return Message(values)
