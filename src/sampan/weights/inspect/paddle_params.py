"""Paddle's ``.pdiparams``: one tensor after another, without their names.

source: Paddle 3, paddle/phi/core/framework/dense_tensor_serialize.cc and framework.proto (VarType).
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path

from sampan.errors import BadInputError
from sampan.weights.inspect.wire import Data, Message, Span, WireError, message

# VarType.Type -> name, bytes
_TYPES: dict[int, tuple[str, int]] = {
    0: ("BOOL", 1),
    1: ("INT16", 2),
    2: ("INT32", 4),
    3: ("INT64", 8),
    4: ("FP16", 2),
    5: ("FP32", 4),
    6: ("FP64", 8),
    20: ("UINT8", 1),
    21: ("INT8", 1),
    22: ("BF16", 2),
}


def description(tensor: Message) -> tuple[str, tuple[int, ...]]:
    """A TensorDesc: type and shape."""
    kind = tensor.integer(1, default=-1)
    return _TYPES.get(kind, (f"type {kind}", 0))[0], tuple(tensor.integers(2))


def read_params(path: Path) -> list[tuple[str, tuple[int, ...]]]:
    """Type and shape of each tensor. Raises BadInputError where the file ends before its tensors do."""
    size = path.stat().st_size
    if size == 0:
        return []
    found = []
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        at = 0
        while at < size:
            try:
                label, shape, at = _one(mapped, at)
            except struct.error:
                at = size + 1
            if at > size:
                raise BadInputError("weights.truncated", path=str(path), size=size, needed=at)
            found.append((label, shape))
    return found


def _one(data: Data, at: int) -> tuple[str, tuple[int, ...], int]:
    """(type, shape, where it ends) of the tensor at ``at``. Raises WireError, struct.error at the end of the file."""
    version, levels = struct.unpack_from("<IQ", data, at)
    at += 12
    if version or levels > 64:
        msg = f"version {version}, {levels} levels"
        raise WireError(msg)
    for _ in range(levels):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
    version, length = struct.unpack_from("<Ii", data, at)
    at += 8
    if version or not 0 <= length <= 4096:
        msg = f"tensor version {version}, description of {length} bytes"
        raise WireError(msg)
    if at + length > len(data):
        return "?", (), at + length
    label, dims = description(message(Span(data, at, at + length)))
    width = next((width for name, width in _TYPES.values() if name == label), None)
    if width is None or any(each < 0 for each in dims) or math.prod(dims) > 1 << 48:
        msg = f"tensor of type {label}, shape {dims}"
        raise WireError(msg)
    return label, dims, at + length + math.prod(dims) * width
