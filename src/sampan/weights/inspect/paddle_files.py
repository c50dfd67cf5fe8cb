"""Paddle inference models: the program (``.pdmodel`` or ``inference.json``) and its ``.pdiparams``.

Layout of .pdiparams: Paddle's paddle/phi/core/framework/dense_tensor_serialize.cc; field numbers: framework.proto;
``inference.json``: its paddle/fluid/pir/serialize_deserialize. Held against files that Paddle 3.3.1 wrote.
"""

from __future__ import annotations

import math
import mmap
from collections import Counter
from pathlib import Path

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.model_report import ReportTensor
from sampan.weights.files import read_object
from sampan.weights.inspect.paddle_params import description, read_params
from sampan.weights.inspect.paddle_pir import PaddleModel, read_pir
from sampan.weights.inspect.wire import Message, Span, WireError, message

_INTERFACE = (9, 10)  # FEED_MINIBATCH, FETCH_LIST: places of the interface, not of data


def read_paddle(program: Path, params: Path | None) -> PaddleModel:
    """Read both files; there must be as many parameters as the program names. Raises BadInputError."""
    model = PaddleModel()
    try:
        if program.suffix == ".json":
            read_pir(read_object(program), model, program)
        else:
            with program.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                _program(Span(mapped, 0, len(mapped)), model)
        shapes = read_params(params) if params else []
    except WireError as error:
        detail = text("weights.damage.message", detail=str(error))
        raise BadInputError("weights.damaged", path=str(program), detail=detail) from error
    if model.weights and params is None:
        shard = program.with_suffix(".pdiparams").name
        raise BadInputError("weights.shard_missing", path=str(program), shard=shard)
    if sorted(model.weights.values()) != sorted(shape for _, shape in shapes):
        raise BadInputError("weights.paddle_pair", path=str(program), expected=len(model.weights), found=len(shapes))
    for label, shape in shapes:
        model.elements[label] = model.elements.get(label, 0) + math.prod(shape)
    return model


def _program(span: Span, model: PaddleModel) -> None:
    program = message(span)
    blocks = list(program.messages(1))
    if not blocks:
        msg = "no block"
        raise WireError(msg)
    model.version = _dotted(next(program.messages(4), message(Span(b"", 0, 0))).integer(1))
    main = blocks[0]  # the others are bodies of its branches and loops
    tensors = {}
    for variable in main.messages(3):
        tensor = _of_variable(variable)
        tensors[tensor.name] = tensor
        if variable.integer(3) and _kind(variable) not in _INTERFACE:  # persistable
            model.weights[tensor.name] = tuple(int(length) for length in tensor.shape)
    operators = list(main.messages(4))
    model.operators = dict(Counter(operator.text(3) for operator in operators))
    model.inputs = [tensors[name] for name in _arguments(operators, "feed", 2) if name in tensors]
    model.outputs = [tensors[name] for name in _arguments(operators, "fetch", 1) if name in tensors]


def _kind(variable: Message) -> int:
    return next((kind.integer(1, default=-1) for kind in variable.messages(2)), -1)


def _of_variable(variable: Message) -> ReportTensor:
    label, dims = next((description(each) for each in variable.messages(2, 3, 1)), ("?", ()))
    return ReportTensor(variable.text(1), label, tuple(str(length) for length in dims))


def _arguments(operators: list[Message], kind: str, side: int) -> list[str]:
    """The names that operators of this kind give (side 2) or take (side 1)."""
    chosen = [operator for operator in operators if operator.text(3) == kind]
    places = [place for operator in chosen for place in operator.messages(side)]
    return [name.text() for place in places for name in place.spans(2)]


def _dotted(version: int) -> str:
    """3001000 is 3.1.0; 0 is a development build."""
    return f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}" if version else "0"
