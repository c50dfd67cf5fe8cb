"""What clients send, checked. Pure: bytes in, a value or an ApiError out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import orjson

from sampan.gateway.engine import TextOrTokens
from sampan.gateway.envelope import ApiError
from sampan.gateway.lengths import CUTS
from sampan.gateway.settings import CHAT, EMBEDDING, Limits, ServedModel

_MAX_TOKEN_ID = 2**31 - 1  # llama_token is an int32

Body = dict[str, object]


@dataclass(frozen=True)
class EmbeddingsRequest:
    """``/v1/embeddings``, checked. ``base64`` is the wanted encoding of the vectors; ``cut`` one of lengths.CUTS;
    ``dimensions`` None where the vectors stay whole.
    """

    inputs: tuple[TextOrTokens, ...]
    base64: bool
    cut: str = "none"
    dimensions: int | None = None


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
    check_model(data, model, EMBEDDING)
    encoding = data.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise ApiError("invalid_value", "encoding_format", field="encoding_format", expected="float, base64")
    inputs = prompted(text_inputs(data.get("input"), "input", limits), data.get("input_type"), model)
    dimensions = _dimensions(data.get("dimensions"), model)
    return EmbeddingsRequest(inputs, encoding == "base64", cut_of(data), dimensions)


def cut_of(data: Body) -> str:
    """``truncate``: none, start or end is cut off; true is end, as other servers have it. Raises ApiError."""
    wish = data.get("truncate")
    if isinstance(wish, bool) or wish is None:
        return "end" if wish else "none"
    if not isinstance(wish, str) or wish.lower() not in CUTS:
        raise ApiError("invalid_value", "truncate", field="truncate", expected=", ".join(CUTS))
    return wish.lower()


def prompted(inputs: tuple[TextOrTokens, ...], kind: object, model: ServedModel) -> tuple[TextOrTokens, ...]:
    """Texts with the model's own prefix for this ``input_type``; token ids stay as they are. Raises ApiError."""
    if kind is None:
        return inputs
    prompts = dict(model.prompts)
    if not isinstance(kind, str) or kind not in prompts:
        known = ", ".join(prompts) or "-"
        raise ApiError("invalid_value", "input_type", field="input_type", expected=known)
    prefix = prompts[kind]
    return tuple(prefix + text if isinstance(text, str) else text for text in inputs)


def check_generation(body: bytes, model: ServedModel, field: str) -> Body:
    """Check a request for a completion; ``field`` is ``messages`` or ``prompt``. Raises ApiError.

    Only what every such request must have is checked here; the engine knows the rest better.
    """
    data = parse_object(body)
    check_model(data, model, CHAT)
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


def check_model(data: Body, model: ServedModel, task: str) -> None:
    """No ``model`` means the one that is served; another one is 404, the wrong kind of request is 400."""
    name = data.get("model", model.id)
    if name != model.id:
        raise ApiError("model_not_found", "model", model=name, served=model.id)
    if model.task != task:
        raise ApiError("wrong_task", model=model.id, task=model.task, wanted=task)


def _dimensions(value: object, model: ServedModel) -> int | None:
    """Cutting a vector is only right for models trained for it; for others only their own length is taken."""
    if value is None or (type(value) is int and value == model.dimensions):
        return None
    if model.cut_dimensions and type(value) is int and 1 <= value <= (model.dimensions or 0):
        return value
    raise ApiError("dimensions_unsupported", "dimensions", asked=value, dimensions=model.dimensions)


def text_inputs(value: object, field: str, limits: Limits) -> tuple[TextOrTokens, ...]:
    """A text, texts, token ids or lists of them. Raises ApiError."""
    if value is None:
        raise ApiError("missing_value", field, field=field)
    items: list[object]
    if isinstance(value, str) or _are_tokens(value):
        items = [value]
    elif isinstance(value, list):
        items = value
    else:
        raise ApiError("invalid_value", field, field=field, expected="string, array")
    if not items:
        raise ApiError("empty_input", field, field=field)
    if len(items) > limits.inputs:
        raise ApiError("too_many_inputs", field, count=len(items), limit=limits.inputs)
    return tuple([_one_input(item, field, index, limits) for index, item in enumerate(items)])


def _one_input(item: object, field: str, index: int, limits: Limits) -> TextOrTokens:
    if isinstance(item, str) and item:
        if len(item) > limits.text_bytes // 4 and len(item.encode()) > limits.text_bytes:
            raise _wrong("text_too_large", field, index, limit=limits.text_bytes)
        return item
    if _are_tokens(item):
        return tuple(item)
    if item in ("", []):
        raise _wrong("empty_input", field, index)
    raise _wrong("invalid_value", field, index, expected="string, array of token ids")


def _wrong(code: str, field: str, index: int, **values: object) -> ApiError:
    """One input of ``field``, which may be an item of a list itself."""
    return ApiError(code, field.partition("[")[0], field=f"{field}[{index}]", **values)


def _are_tokens(value: object) -> TypeGuard[list[int]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(token) is int and 0 <= token <= _MAX_TOKEN_ID for token in value)
    )
