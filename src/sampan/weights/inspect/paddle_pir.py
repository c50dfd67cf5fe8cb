"""Paddle 3's ``inference.json``: the program as JSON (PIR).

source: Paddle 3, paddle/fluid/pir/serialize_deserialize; held against files that Paddle 3.3.1 wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.model_report import ReportTensor
from sampan.weights.files import member

_PIR_TYPES = {
    "t_f32": "FP32",
    "t_f16": "FP16",
    "t_bf16": "BF16",
    "t_i64": "INT64",
    "t_i32": "INT32",
    "t_i8": "INT8",
    "t_bool": "BOOL",
}


@dataclass
class PaddleModel:
    """What the program and the parameters say."""

    version: str = "?"
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict)  # names are lost in .pdiparams; sorted there
    inputs: list[ReportTensor] = field(default_factory=list)
    outputs: list[ReportTensor] = field(default_factory=list)
    operators: dict[str, int] = field(default_factory=dict)
    elements: dict[str, int] = field(default_factory=dict)


def read_pir(data: dict[str, object], model: PaddleModel, path: Path) -> None:
    base = member(data, "base_code")
    if base.get("magic") != "pir":
        raise BadInputError("weights.config", path=str(path), detail=text("weights.damage.not_pir"))
    model.version = f"PIR {base.get('version')}"
    for op in _ops(data):
        name = str(op.get("#", "")).partition(".")[2] or str(op.get("#", ""))
        model.operators[name] = model.operators.get(name, 0) + 1
        if name == "p":
            attributes = op.get("A")
            label = attributes[-1] if isinstance(attributes, list) and attributes else ""
            model.weights[str(label)] = tuple(_pir_tensor(op)[1])
        elif name in ("data", "fetch"):
            label, dims = _pir_tensor(op)
            tensor = ReportTensor(_pir_name(op), label, tuple(str(length) for length in dims))
            (model.inputs if name == "data" else model.outputs).append(tensor)


def _ops(data: dict[str, object]) -> list[dict[str, object]]:
    """The operations of the first block."""
    level: object = member(data, "program")
    for key in ("regions", "blocks", "ops"):
        inner = level.get(key) if isinstance(level, dict) else None
        level = inner if key == "ops" else inner[0] if isinstance(inner, list) and inner else {}
    return [op for op in level if isinstance(op, dict)] if isinstance(level, list) else []


def _pir_tensor(op: dict[str, object]) -> tuple[str, list[int]]:
    out = op.get("O")
    first = out[0] if isinstance(out, list) and out else out
    described = member(first, "TT").get("D") if isinstance(first, dict) else None
    if not isinstance(described, list) or len(described) < 2 or not isinstance(described[1], list):
        return "?", []
    kind = str(described[0].get("#", "")).rpartition(".")[2] if isinstance(described[0], dict) else "?"
    return _PIR_TYPES.get(kind, kind), [length for length in described[1] if type(length) is int]


def _pir_name(op: dict[str, object]) -> str:
    attributes = op.get("A")
    for each in attributes if isinstance(attributes, list) else []:
        if isinstance(each, dict) and each.get("N") == "name":
            return str(member(each, "AT").get("D"))
    return "?"
