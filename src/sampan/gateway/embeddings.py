"""``POST /v1/embeddings`` and ``POST /v1/similarity``."""

from __future__ import annotations

import orjson

from sampan.gateway import similarity, vectors
from sampan.gateway.bodies import read_body
from sampan.gateway.call import Call
from sampan.gateway.disconnect import unless_client_leaves
from sampan.gateway.engine import Ask, Embedded, EngineFault, TextOrTokens
from sampan.gateway.envelope import from_fault
from sampan.gateway.house import House
from sampan.gateway.lengths import Cut, Lengths, estimate
from sampan.gateway.replies import Reply, json_reply
from sampan.gateway.requests import EmbeddingsRequest, parse_embeddings

Found = tuple[Embedded, tuple[Cut, ...]]


class Embeddings:
    """The endpoints over one engine."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._lengths = Lengths(house.engine, house.model.tokens)

    async def post(self, call: Call) -> Reply:
        """Check, ask the engine, answer. Raises ApiError, ClientGoneError."""
        body = await read_body(call, self._house.admission)
        asked = parse_embeddings(body, self._house.model, self._house.limits)
        found, cuts = await self._embedded(call, asked.inputs, asked.cut, "input")
        return Reply(answer(found, asked, self._house.model.id, cuts))

    async def similarity(self, call: Call) -> Reply:
        """Cosines of pairs, or of one text to many. Raises ApiError, ClientGoneError."""
        house = self._house
        asked = similarity.parse(await read_body(call, house.admission), house.model, house.limits)
        found, cuts = await self._embedded(call, asked.texts, asked.cut, "input")
        return json_reply(similarity.answer(asked, found, house.model.id) | _cut_report(cuts))

    async def _embedded(self, call: Call, inputs: tuple[TextOrTokens, ...], cut: str, param: str) -> Found:
        house = self._house
        tokens = sum(map(estimate, inputs))
        ask = call.settle_ask(house.limits.request_seconds, bulk=len(inputs) > house.limits.bulk_inputs)
        with house.admission.admitted(tokens):
            try:
                found, cuts = await unless_client_leaves(call, self._work(inputs, cut, ask))
            except EngineFault as fault:
                raise from_fault(fault, param) from fault
        call.tokens = found.tokens
        return found, cuts

    async def _work(self, inputs: tuple[TextOrTokens, ...], cut: str, ask: Ask) -> Found:
        fitted, cuts = await self._lengths.fit(inputs, cut)
        return await self._house.engine.embed(fitted, ask), cuts


def answer(found: Embedded, asked: EmbeddingsRequest, model: str, cuts: tuple[Cut, ...] = ()) -> bytes:
    """OpenAI's answer as JSON; ``truncated`` is added where texts were cut."""
    encode = vectors.to_base64 if asked.base64 else _to_list
    packed = found.vectors
    if asked.dimensions is not None:
        packed = tuple(vectors.cut(vector, asked.dimensions) for vector in packed)
    data: dict[str, object] = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": encode(vector)}
            for index, vector in enumerate(packed)
        ],
        "model": model,
        "usage": {"prompt_tokens": found.tokens, "total_tokens": found.tokens},
    }
    return orjson.dumps(data | _cut_report(cuts) if cuts else data)


def _cut_report(cuts: tuple[Cut, ...]) -> dict[str, object]:
    return (
        {"truncated": [{"index": cut.index, "tokens": cut.tokens, "kept": cut.kept} for cut in cuts]} if cuts else {}
    )


def _to_list(packed: bytes) -> list[float]:
    return vectors.to_floats(packed).tolist()
