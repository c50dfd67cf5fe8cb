"""What clients send, checked. Pure: bytes in, a value or an ApiError out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import orjson

from sampan.gateway.engine import TextOrTokens
from sampan.gateway.envelope import ApiError
from sampan.gateway.settings import CHAT, EMBEDDING, Limits, ServedModel

_MAX_TOKEN_ID = 2**31 - 1  # llama_token is an int32

Body = dict[str, object]


@dataclass(frozen=True)
class EmbeddingsRequest:
    """``/v1/embeddings``, checked. ``base64`` is the wanted encoding of the vectors."""

    inputs: tuple[TextOrTokens, ...]
    base64: bool


def parse_object(body: bytes) -> Body:
    """The body as a JSON object. Raises ApiError ``invalid_json``."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError("invalid_json", detail=str(error)) from error
    if not isinstance(data, dict):
        raise ApiError("invalid_json", detail="not an object")
    return data


def parse_embeddings(body: bytes, model: ServedModel, limits: Limits) -> EmbeddingsRequest:
    """Check a request for embeddings. Raises ApiError."""
    data = parse_object(body)
    _check_model(data, model, EMBEDDING)
    encoding = data.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise ApiError("invalid_value", "encoding_format", field="encoding_format", expected="float, base64")
    _check_dimensions(data.get("dimensions"), model)
    return EmbeddingsRequest(_inputs(data.get("input"), limits), encoding == "base64")


def check_generation(body: bytes, model: ServedModel, field: str) -> Body:
    """Check a request for a completion; ``field`` is ``messages`` or ``prompt``. Raises ApiError.

    Only what every such request must have is checked here; the engine knows the rest better.
    """
    data = parse_object(body)
    _check_model(data, model, CHAT)
    value = data.get(field)
    if value is None:
        raise ApiError("missing_value", field, field=field)
    wanted = list if field == "messages" else (str, list)
    if not isinstance(value, wanted):
        expected = "array" if field == "messages" else "string, array"
        raise ApiError("invalid_value", field, field=field, expected=expected)
    if not value:
        raise ApiError("empty_input", field, field=field)
    return data


def _check_model(data: Body, model: ServedModel, task: str) -> None:
    """No ``model`` means the one that is served; another one is 404, the wrong kind of request is 400."""
    name = data.get("model", model.id)
    if name != model.id:
        raise ApiError("model_not_found", "model", model=name, served=model.id)
    if model.task != task:
        raise ApiError("wrong_task", model=model.id, task=model.task, wanted=task)


def _check_dimensions(value: object, model: ServedModel) -> None:
    """Cutting a vector is only right for models trained for it, so only the model's own length is taken."""
    if value is None or (type(value) is int and value == model.dimensions):
        return
    raise ApiError("dimensions_unsupported", "dimensions", asked=value, dimensions=model.dimensions)


def _inputs(value: object, limits: Limits) -> tuple[TextOrTokens, ...]:
    if value is None:
        raise ApiError("missing_value", "input", field="input")
    items: list[object]
    if isinstance(value, str) or _are_tokens(value):
        items = [value]
    elif isinstance(value, list):
        items = value
    else:
        raise ApiError("invalid_value", "input", field="input", expected="string, array")
    if not items:
        raise ApiError("empty_input", "input", field="input")
    if len(items) > limits.inputs:
        raise ApiError("too_many_inputs", "input", count=len(items), limit=limits.inputs)
    return tuple(_one_input(item, f"input[{index}]") for index, item in enumerate(items))


def _one_input(item: object, where: str) -> TextOrTokens:
    if item in ("", []):
        raise ApiError("empty_input", "input", field=where)
    if isinstance(item, str):
        return item
    if _are_tokens(item):
        return tuple(item)
    raise ApiError("invalid_value", "input", field=where, expected="string, array of token ids")


def _are_tokens(value: object) -> TypeGuard[list[int]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(token) is int and 0 <= token <= _MAX_TOKEN_ID for token in value)
    )
