"""Endpoints beside OpenAI's: similarity, rerank, tokens, prompts, description."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes.engine import DIMENSIONS, FakeLlamaServer, vector_of
from tests.fakes.gateway import CHAT_MODEL, EMBEDDING_MODEL, fake_engine

from sampan.gateway.app import Api, create_app
from sampan.gateway.engine import EngineState
from sampan.gateway.envelope import CODES
from sampan.gateway.settings import Limits, ServedModel

RERANKER = ServedModel("fake-rerank", "rerank")
PREFIXED = ServedModel(
    "e5", "embedding", DIMENSIONS, prompts=(("query", "query: "), ("passage", "passage: ")), cut_dimensions=True
)


async def client_of(folder: Path, model: ServedModel, limits: Limits) -> AsyncIterator[httpx.AsyncClient]:
    fake = FakeLlamaServer(embeddings=model.task == "embedding", reranking=model.task == "rerank")
    async with fake_engine(folder, fake) as engine:
        transport = httpx.ASGITransport(create_app(engine, model, limits, slots=2))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield client


@pytest.fixture
async def embedding(short_folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    async for client in client_of(short_folder, PREFIXED, Limits(inputs=4)):
        yield client


@pytest.fixture
async def rerank(short_folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    async for client in client_of(short_folder, RERANKER, Limits(inputs=4)):
        yield client


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_similarity_of_pairs_and_of_one_to_many(embedding: httpx.AsyncClient) -> None:
    pairs = (await embedding.post("/v1/similarity", json={"pairs": [["a", "a"], ["a", "b"]]})).json()
    many = (await embedding.post("/v1/similarity", json={"source": "a", "targets": ["a", "b", "c"]})).json()
    expected = [1.0, dot(vector_of("a"), vector_of("b")), dot(vector_of("a"), vector_of("c"))]
    assert pairs["similarities"] == pytest.approx(expected[:2], abs=1e-6)
    assert many["similarities"] == pytest.approx(expected, abs=1e-6)
    assert pairs["usage"]["prompt_tokens"] == 6, "each text once"


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_value", "source"),
        ({"source": ["a", "b"], "targets": ["c"]}, "invalid_value", "source"),
        ({"source": "a"}, "missing_value", "targets"),
        ({"pairs": []}, "empty_input", "pairs"),
        ({"pairs": "a"}, "invalid_value", "pairs"),
        ({"pairs": [["a"]]}, "invalid_value", "pairs"),
        ({"pairs": [["a", 1]]}, "invalid_value", "pairs"),
        ({"pairs": [["a", "b"]] * 3}, "too_many_inputs", "pairs"),
        ({"pairs": [["a", ""]]}, "empty_input", "pairs"),
    ],
)
async def test_similarities_that_make_no_sense(
    embedding: httpx.AsyncClient, body: dict[str, Any], code: str, param: str
) -> None:
    answer = await embedding.post("/v1/similarity", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["param"] == param


async def test_a_prefix_is_put_only_where_asked(embedding: httpx.AsyncClient) -> None:
    for more, text in (({}, "a"), ({"input_type": "query"}, "query: a"), ({"input_type": "passage"}, "passage: a")):
        found = (await embedding.post("/v1/embeddings", json={"input": "a", **more})).json()
        assert found["data"][0]["embedding"] == pytest.approx(vector_of(text), abs=1e-6)
    wrong = await embedding.post("/v1/embeddings", json={"input": "a", "input_type": "code"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "input_type")
    assert "query, passage" in wrong.json()["error"]["message"]
    listed = (await embedding.get("/v1/models")).json()["data"][0]
    assert listed["input_types"] == ["query", "passage"]


async def test_vectors_are_cut_only_for_models_made_for_it(embedding: httpx.AsyncClient, tmp_path: Path) -> None:
    cut = (await embedding.post("/v1/embeddings", json={"input": "a", "dimensions": 3})).json()["data"][0][
        "embedding"
    ]
    whole = vector_of("a")[:3]
    assert cut == pytest.approx([number / dot(whole, whole) ** 0.5 for number in whole], abs=1e-6)
    for dimensions in (0, DIMENSIONS + 1, "3"):
        answer = await embedding.post("/v1/embeddings", json={"input": "a", "dimensions": dimensions})
        assert answer.json()["error"]["code"] == "dimensions_unsupported"


async def test_rerank_in_three_shapes(rerank: httpx.AsyncClient) -> None:
    documents = ["nothing", "two words here", "words"]
    body = {"query": "two words", "documents": documents, "top_n": 2, "return_documents": True}
    jina = (await rerank.post("/v1/rerank", json=body)).json()
    assert [item["index"] for item in jina["results"]] == [1, 2]
    assert [item["relevance_score"] for item in jina["results"]] == pytest.approx([0.8808, 0.7311], abs=1e-4)
    assert jina["results"][0]["document"] == {"text": "two words here"}
    as_objects = {"query": "two words", "documents": [{"text": text} for text in documents]}
    assert len((await rerank.post("/v1/rerank", json=as_objects)).json()["results"]) == 3
    tei = (await rerank.post("/rerank", json={"query": "two words", "texts": documents, "raw_scores": True})).json()
    assert [(item["index"], item["score"]) for item in tei] == [(1, 2.0), (2, 1.0), (0, 0.0)]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"documents": ["a"]}, "missing_value"),
        ({"query": "", "documents": ["a"]}, "empty_input"),
        ({"query": 1, "documents": ["a"]}, "invalid_value"),
        ({"query": "a"}, "missing_value"),
        ({"query": "a", "documents": "a"}, "invalid_value"),
        ({"query": "a", "documents": []}, "empty_input"),
        ({"query": "a", "documents": [1]}, "invalid_value"),
        ({"query": "a", "documents": ["a"] * 5}, "too_many_inputs"),
        ({"query": "a", "documents": ["a"], "top_n": 0}, "invalid_value"),
    ],
)
async def test_rankings_that_make_no_sense(rerank: httpx.AsyncClient, body: dict[str, Any], code: str) -> None:
    answer = await rerank.post("/v1/rerank", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_an_embedding_service_ranks_nothing(embedding: httpx.AsyncClient) -> None:
    answer = await embedding.post("/v1/rerank", json={"query": "a", "documents": ["a"]})
    assert answer.json()["error"]["code"] == "wrong_task"


async def test_tokens_are_the_models_own(embedding: httpx.AsyncClient) -> None:
    found = (await embedding.post("/tokenize", json={"content": "two words"})).json()
    assert (len(found["tokens"]), found["count"]) == (4, 4)
    bare = (await embedding.post("/tokenize", json={"content": "two words", "add_special": False})).json()
    assert bare["tokens"] == found["tokens"][1:-1]
    assert (await embedding.post("/tokenize", json={"content": 3})).status_code == 400


async def test_ready_is_more_than_alive(short_folder: Path) -> None:
    async with fake_engine(short_folder, FakeLlamaServer(embeddings=True)) as engine:
        app = create_app(engine, EMBEDDING_MODEL)
        assert isinstance(app, Api)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
            assert (await client.get("/ready")).json() == {"ready": True, "reason": "ok"}
            for change, reason in (({"ready": False}, "selftest"), ({"draining": True}, "draining")):
                for name, value in change.items():
                    setattr(app.house, name, value)
                answer = await client.get("/ready")
                assert (answer.status_code, answer.json()["reason"]) == (503, reason)
            engine.state = EngineState.LOADING
            app.house.draining = False
            assert (await client.get("/ready")).json()["reason"] == "loading"
            engine.state = EngineState.READY
            app.house.meter.selftest_ok = False
            answer = await client.post("/v1/embeddings", json={"input": "a"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "selftest_failed")


async def test_the_description_names_every_path_and_status(embedding: httpx.AsyncClient) -> None:
    described = (await embedding.get("/openapi.json")).json()
    app = create_app(object(), CHAT_MODEL)  # type: ignore[arg-type]
    assert isinstance(app, Api)
    methods = {path: route.method.lower() for path, route in app.routes.items()}
    methods["/v1/models/{model}"] = methods.pop("/v1/models/")
    assert {path: next(iter(verbs)) for path, verbs in described["paths"].items()} == methods
    statuses = {
        int(status) for path in described["paths"].values() for verb in path.values() for status in verb["responses"]
    }
    own = {500, 405}  # faults of ours, and of a client that does not follow the description
    assert statuses - {200} == set(CODES.values()) - own


async def test_request_ids_come_back_and_strange_ones_do_not(embedding: httpx.AsyncClient) -> None:
    given = await embedding.get("/health", headers={"X-Request-Id": "abc-1.2:3"})
    assert given.headers["x-request-id"] == "abc-1.2:3"
    for strange in ("a b", "x" * 200, 'a"b', ""):
        made = (await embedding.get("/health", headers={"X-Request-Id": strange})).headers["x-request-id"]
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]+", made)


async def test_the_docs_need_no_network(embedding: httpx.AsyncClient) -> None:
    page = await embedding.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert re.findall(r"(?:https?:)?//[\w.]+", page.text) == []
    assert "openapi.json" in page.text
    assert json.loads((await embedding.get("/openapi.json")).text)["openapi"].startswith("3.1")
