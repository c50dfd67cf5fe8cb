"""ONNX: the graph's inputs, outputs and stored tensors. Field numbers: the ONNX project's onnx.proto, IR 3-13."""

from __future__ import annotations

import math
import mmap
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.model_report import ReportTensor
from sampan.weights.files import inside, refuse_lfs_pointer
from sampan.weights.inspect.wire import Message, Span, WireError, message, signed

# TensorProto.DataType -> name, bits
_TYPES: dict[int, tuple[str, int]] = {
    1: ("FLOAT", 32),
    2: ("UINT8", 8),
    3: ("INT8", 8),
    4: ("UINT16", 16),
    5: ("INT16", 16),
    6: ("INT32", 32),
    7: ("INT64", 64),
    8: ("STRING", 0),
    9: ("BOOL", 8),
    10: ("FLOAT16", 16),
    11: ("DOUBLE", 64),
    12: ("UINT32", 32),
    13: ("UINT64", 64),
    16: ("BFLOAT16", 16),
    17: ("FLOAT8E4M3FN", 8),
    19: ("FLOAT8E5M2", 8),
    21: ("UINT4", 4),
    22: ("INT4", 4),
    23: ("FLOAT4E2M1", 4),
}
_EXTERNAL = 1  # TensorProto.DataLocation


@dataclass
class OnnxModel:
    """What the file says; ``elements`` counts numbers by type, ``external`` holds the end of each file beside it."""

    producer: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    inputs: list[ReportTensor] = field(default_factory=list)
    outputs: list[ReportTensor] = field(default_factory=list)
    elements: dict[str, int] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    external: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def read_onnx(path: Path) -> OnnxModel:
    """Read the graph and hold every stored tensor against its bytes. Raises BadInputError."""
    model = OnnxModel()
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            _model(Span(mapped, 0, len(mapped)), model)
    except WireError as error:
        detail = text("weights.damage.message", detail=str(error))
        raise BadInputError("weights.damaged", path=str(path), detail=detail) from error
    model.inputs = [each for each in model.inputs if each.name not in model.names]  # old files list the weights too
    for name, end in model.external.items():
        _require_external(path, name, end)
    return model


def _model(span: Span, model: OnnxModel) -> None:
    outer = message(span)
    graphs = outer.spans(7)
    if not graphs:
        msg = "no graph"
        raise WireError(msg)
    model.producer = outer.text(2)
    model.opsets = {each.text(1): each.integer(2) for each in outer.messages(8)}
    model.metadata = dict(map(_pair, outer.messages(14)))
    for graph in map(message, graphs):
        operators = [node.text(4) for node in graph.messages(1)]
        model.operators = dict(Counter(operators))
        model.inputs = [_value_info(each) for each in graph.messages(11)]
        model.outputs = [_value_info(each) for each in graph.messages(12)]
        for tensor in graph.messages(5):
            _tensor(tensor, model)


def _tensor(tensor: Message, model: OnnxModel) -> None:
    dims, name, raw = tensor.integers(1), tensor.text(8), tensor.spans(9)
    count = math.prod(dims)
    label, bits = _TYPES.get(tensor.integer(2), (f"type {tensor.integer(2)}", 0))
    if any(length < 0 for length in dims) or count > 1 << 48:
        msg = f"tensor {name} of shape {dims}"
        raise WireError(msg)
    needed = -(-count * bits // 8)
    if tensor.integer(14) == _EXTERNAL:
        _external(dict(map(_pair, tensor.messages(13))), needed, model)
    elif raw and bits and len(raw[-1]) != needed:
        msg = f"tensor {name} has {len(raw[-1])} bytes, its shape wants {needed}"
        raise WireError(msg)
    model.names.add(name)
    model.elements[label] = model.elements.get(label, 0) + count


def _external(places: dict[str, str], needed: int, model: OnnxModel) -> None:
    offset, length = places.get("offset", "0"), places.get("length", str(needed))
    if not (offset.isdecimal() and length.isdecimal() and len(offset) < 20 and len(length) < 20):
        msg = f"external tensor at {offset}, {length} bytes"
        raise WireError(msg)
    file = places.get("location", "")
    model.external[file] = max(model.external.get(file, 0), int(offset) + int(length))


def _require_external(path: Path, name: str, end: int) -> None:
    file = inside(path.parent, name)
    if not file.is_file():
        raise BadInputError("weights.shard_missing", path=str(path), shard=name)
    refuse_lfs_pointer(file)
    size = file.stat().st_size
    if size < end:
        raise BadInputError("weights.truncated", path=str(file), size=size, needed=end)


def _pair(entry: Message) -> tuple[str, str]:
    """A StringStringEntryProto."""
    return entry.text(1), entry.text(2, longest=1 << 20)


def _value_info(info: Message) -> ReportTensor:
    kind, shape = 0, []
    for tensor in info.messages(2, 1):  # type, tensor_type
        kind = tensor.integer(1)
        for dimension in tensor.messages(2, 1):  # shape, dim
            shape.append(dimension.text(2) or str(signed(dimension.integer(1, default=-1 + (1 << 64)))))
    return ReportTensor(info.text(1), _TYPES.get(kind, (f"type {kind}", 0))[0], tuple(shape))
