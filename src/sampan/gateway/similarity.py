"""``/v1/similarity``: cosines, for clients that want no vectors. Pure.

``{"pairs": [["a", "b"], …]}``, or ``{"source": "a", "targets": ["b", …]}``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sampan.gateway import vectors
from sampan.gateway.engine import Embedded, TextOrTokens
from sampan.gateway.envelope import ApiError
from sampan.gateway.requests import Body, check_model, cut_of, parse_object, prompted, text_inputs
from sampan.gateway.settings import EMBEDDING, Limits, ServedModel


@dataclass(frozen=True)
class SimilarityRequest:
    """``texts`` without repetitions; ``pairs`` are places in it."""

    texts: tuple[TextOrTokens, ...]
    pairs: tuple[tuple[int, int], ...]
    cut: str


def parse(body: bytes, model: ServedModel, limits: Limits) -> SimilarityRequest:
    """Raises ApiError."""
    data = parse_object(body)
    check_model(data, model, EMBEDDING)
    pairs = _pairs(data, limits)
    flat = prompted(tuple(text for pair in pairs for text in pair), data.get("input_type"), model)
    places: dict[TextOrTokens, int] = {}
    found = [places.setdefault(text, len(places)) for text in flat]
    return SimilarityRequest(tuple(places), tuple(zip(found[::2], found[1::2], strict=True)), cut_of(data))


def _pairs(data: Body, limits: Limits) -> list[tuple[TextOrTokens, TextOrTokens]]:
    if "pairs" not in data:
        source = text_inputs(data.get("source"), "source", limits)
        if len(source) != 1:
            raise ApiError("invalid_value", "source", field="source", expected="string")
        return [(source[0], target) for target in text_inputs(data.get("targets"), "targets", limits)]
    pairs = data["pairs"]
    if not isinstance(pairs, list):
        raise ApiError("invalid_value", "pairs", field="pairs", expected="array of pairs")
    if not pairs:
        raise ApiError("empty_input", "pairs", field="pairs")
    if 2 * len(pairs) > limits.inputs:
        raise ApiError("too_many_inputs", "pairs", count=2 * len(pairs), limit=limits.inputs)
    return [_pair(pair, index, limits) for index, pair in enumerate(pairs)]


def _pair(pair: object, index: int, limits: Limits) -> tuple[TextOrTokens, TextOrTokens]:
    where = f"pairs[{index}]"
    texts = text_inputs(pair, where, limits) if isinstance(pair, list) else ()
    if len(texts) != 2:
        raise ApiError("invalid_value", "pairs", field=where, expected="two texts")
    return texts[0], texts[1]


def answer(asked: SimilarityRequest, found: Embedded, model: str) -> dict[str, object]:
    """``similarities`` in the order of the pairs."""
    scores = [vectors.cosine(found.vectors[one], found.vectors[other]) for one, other in asked.pairs]
    usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
    return {"object": "list", "similarities": scores, "model": model, "usage": usage}
