"""Whatever JSON comes, it is answered, and never with 500. More of it: SAMPAN_ANY_JSON=2000."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.gateway.engines import ScriptedEngine

from sampan.gateway.app import create_app
from sampan.gateway.settings import Limits, ServedModel

NAMES = (
    "input",
    "model",
    "encoding_format",
    "dimensions",
    "truncate",
    "input_type",
    "pairs",
    "source",
    "targets",
    "query",
    "documents",
    "texts",
    "top_n",
    "raw_scores",
    "content",
    "add_special",
    "messages",
    "prompt",
    "stream",
    "max_tokens",
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**33), 2**33)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
BODIES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5)
PATHS = {
    "embedding": ("/v1/embeddings", "/v1/similarity", "/tokenize"),
    "rerank": ("/v1/rerank", "/rerank"),
    "chat": ("/v1/chat/completions", "/v1/completions"),
}


@settings(max_examples=int(os.environ.get("SAMPAN_ANY_JSON", "20")), deadline=None)
@given(body=BODIES, task=st.sampled_from(sorted(PATHS)))
def test_no_json_makes_the_gateway_fail(body: dict[str, Any], task: str) -> None:
    async def ask() -> None:
        model = ServedModel("m", task, 8, tokens=16, prompts=(("query", "q: "),), cut_dimensions=True)
        app = create_app(ScriptedEngine(), model, Limits(inputs=3, text_bytes=100))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
            for path in PATHS[task]:
                answer = await client.post(path, json=body)
                assert answer.status_code in (200, 400, 404), answer.text
                assert answer.json()

    asyncio.run(ask())
