"""``POST /v1/embeddings``."""

from __future__ import annotations

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope

from sampan.gateway import vectors
from sampan.gateway.bodies import read_body
from sampan.gateway.disconnect import unless_client_leaves
from sampan.gateway.engine import Embedded, Engine, EngineFault
from sampan.gateway.envelope import ApiError, from_fault
from sampan.gateway.requests import parse_embeddings
from sampan.gateway.settings import Limits, ServedModel


class Embeddings:
    """The endpoint over one engine."""

    def __init__(self, engine: Engine, model: ServedModel, limits: Limits) -> None:
        self._engine = engine
        self._model = model
        self._limits = limits

    async def post(self, scope: Scope, receive: Receive) -> Response:
        """Check, ask the engine, check its vectors, answer. Raises ApiError, ClientGoneError."""
        body = await read_body(scope, receive, self._limits.body_bytes)
        asked = parse_embeddings(body, self._model, self._limits)
        try:
            found = await unless_client_leaves(receive, self._engine.embed(asked.inputs))
        except EngineFault as fault:
            raise from_fault(fault, "input") from fault
        return Response(answer(found, self._model.id, base64=asked.base64), media_type="application/json")


def answer(found: Embedded, model: str, *, base64: bool) -> bytes:
    """OpenAI's answer as JSON. Raises ApiError ``vector_not_finite``: such a vector never leaves."""
    for index, packed in enumerate(found.vectors):
        if not vectors.is_finite(packed):
            raise ApiError("vector_not_finite", index=index)
    encode = vectors.to_base64 if base64 else _to_list
    return orjson.dumps(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": encode(packed)}
                for index, packed in enumerate(found.vectors)
            ],
            "model": model,
            "usage": {"prompt_tokens": found.tokens, "total_tokens": found.tokens},
        }
    )


def _to_list(packed: bytes) -> list[float]:
    return vectors.to_floats(packed).tolist()
