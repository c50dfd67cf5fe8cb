"""``POST /v1/rerank`` in the shapes of Jina, Cohere and TEI, and ``POST /tokenize``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import orjson

from sampan.gateway.bodies import read_body
from sampan.gateway.call import Call
from sampan.gateway.disconnect import unless_client_leaves
from sampan.gateway.engine import EngineFault, Ranked
from sampan.gateway.envelope import ApiError, from_fault
from sampan.gateway.house import House
from sampan.gateway.lengths import estimate
from sampan.gateway.replies import Reply, json_reply
from sampan.gateway.requests import Body, check_model, parse_object
from sampan.gateway.settings import RERANK, Limits, ServedModel


@dataclass(frozen=True)
class RerankRequest:
    """``tei``: TEI's shape was sent, so a bare list goes back. ``raw``: logits instead of 0 to 1."""

    query: str
    documents: tuple[str, ...]
    top: int
    with_documents: bool
    raw: bool
    tei: bool


class Reranks:
    """The endpoints over one engine."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def post(self, call: Call) -> Reply:
        """Raises ApiError, ClientGoneError."""
        house = self._house
        asked = parse(await read_body(call, house.admission), house.model, house.limits)
        pairs = estimate(asked.query) * len(asked.documents) + sum(map(estimate, asked.documents))
        ask = call.settle_ask(house.limits.request_seconds, bulk=len(asked.documents) > house.limits.bulk_inputs)
        with house.admission.admitted(pairs):
            try:
                work = house.engine.rerank(asked.query, asked.documents, ask)
                found = await unless_client_leaves(call, work)
            except EngineFault as fault:
                raise from_fault(fault, "documents") from fault
        call.tokens = found.tokens
        return Reply(orjson.dumps(answer(asked, found, house.model.id)))

    async def tokenize(self, call: Call) -> Reply:
        """``{"content" or "text" or "input": "…", "add_special": true}`` -> ``{"tokens": […], "count": n}``."""
        house = self._house
        data = parse_object(await read_body(call, house.admission))
        text = next((data[name] for name in ("content", "text", "input") if name in data), None)
        if not isinstance(text, str):
            raise ApiError("invalid_value", "content", field="content", expected="string")
        if len(text.encode("utf-8", "surrogatepass")) > house.limits.text_bytes:
            raise ApiError("text_too_large", "content", field="content", limit=house.limits.text_bytes)
        call.settle_ask(house.limits.request_seconds, bulk=False)
        with house.admission.admitted(0):
            try:
                special = data.get("add_special", True) is not False
                tokens = await unless_client_leaves(call, house.engine.tokenize(text, special=special))
            except EngineFault as fault:
                raise from_fault(fault, "content") from fault
        return json_reply({"tokens": tokens, "count": len(tokens), "max_tokens": house.model.tokens})


def parse(body: bytes, model: ServedModel, limits: Limits) -> RerankRequest:
    """Raises ApiError."""
    data = parse_object(body)
    check_model(data, model, RERANK)
    query = data.get("query")
    if query is None:
        raise ApiError("missing_value", "query", field="query")
    if not isinstance(query, str):
        raise ApiError("invalid_value", "query", field="query", expected="string")
    tei = "documents" not in data and "texts" in data
    documents = _documents(data, "texts" if tei else "documents", limits)
    if not query:
        raise ApiError("empty_input", "query", field="query")
    return RerankRequest(
        query,
        documents,
        _top(data, len(documents)),
        data.get("return_documents", data.get("return_text")) is True,
        data.get("raw_scores") is True,
        tei,
    )


def _documents(data: Body, field: str, limits: Limits) -> tuple[str, ...]:
    found = data.get(field)
    if found is None:
        raise ApiError("missing_value", field, field=field)
    if not isinstance(found, list):
        raise ApiError("invalid_value", field, field=field, expected="array")
    if not found:
        raise ApiError("empty_input", field, field=field)
    if len(found) > limits.inputs:
        raise ApiError("too_many_inputs", field, count=len(found), limit=limits.inputs)
    texts = [item.get("text") if isinstance(item, dict) else item for item in found]
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ApiError("invalid_value", field, field=f"{field}[{index}]", expected="string")
    return tuple(str(text) for text in texts)


def _top(data: Body, count: int) -> int:
    top = data.get("top_n")
    if top is None:
        return count
    if type(top) is not int or top < 1:
        raise ApiError("invalid_value", "top_n", field="top_n", expected="integer >= 1")
    return min(top, count)


def answer(asked: RerankRequest, found: Ranked, model: str) -> object:
    """Best first; ``relevance_score`` is the logistic function of the model's score, so between 0 and 1."""
    if not all(map(math.isfinite, found.scores)):
        raise ApiError("vector_not_finite", index=0, detail="score")
    order = sorted(range(len(found.scores)), key=lambda index: -found.scores[index])[: asked.top]
    scores = {index: found.scores[index] if asked.raw else _logistic(found.scores[index]) for index in order}
    if asked.tei:
        return [
            {"index": index, "score": scores[index]}
            | ({"text": asked.documents[index]} if asked.with_documents else {})
            for index in order
        ]
    results = [
        {"index": index, "relevance_score": scores[index]}
        | ({"document": {"text": asked.documents[index]}} if asked.with_documents else {})
        for index in order
    ]
    usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
    return {"model": model, "object": "list", "results": results, "usage": usage}


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
