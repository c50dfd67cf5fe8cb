"""The application over the fake engine, without a network: statuses, codes, shapes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes.engine import DIMENSIONS, FakeLlamaServer, vector_of
from tests.fakes.gateway import CHAT_MODEL, EMBEDDING_MODEL, RunningEngine, fake_engine

from sampan.gateway.app import create_app
from sampan.gateway.engine import EngineState
from sampan.gateway.envelope import CODES
from sampan.gateway.settings import Limits, ServedModel

LIMITS = Limits()
TOKENS = 16
Api = tuple[httpx.AsyncClient, FakeLlamaServer, RunningEngine]


@contextlib.asynccontextmanager
async def api(
    folder: Path, model: ServedModel, *, limits: Limits = LIMITS, seconds: float = 30.0
) -> AsyncIterator[Api]:
    fake = FakeLlamaServer(embeddings=model.task == "embedding", ubatch=16, context=16, alias=model.id)
    async with fake_engine(folder, fake, seconds=seconds) as engine:
        transport = httpx.ASGITransport(create_app(engine, model, limits), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield client, fake, engine


@pytest.fixture
async def embedding(short_folder: Path) -> AsyncIterator[Api]:
    async with api(short_folder, EMBEDDING_MODEL) as parts:
        yield parts


@pytest.fixture
async def chat(short_folder: Path) -> AsyncIterator[Api]:
    async with api(short_folder, CHAT_MODEL) as parts:
        yield parts


def error_of(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Every error has the same envelope."""
    assert response.headers["content-type"] == "application/json"
    data = response.json()
    assert set(data) == {"error"}
    error: dict[str, Any] = data["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (response.status_code, error["code"]) == (status, code)
    assert error["type"] == ("server_error" if status >= 500 else "invalid_request_error")
    assert error["message"]
    assert "api." not in error["message"], "the catalogue has no text for it"
    return error


async def test_embeddings_have_openais_shape_and_order(embedding: Api) -> None:
    client, _, _ = embedding
    response = await client.post("/v1/embeddings", json={"model": "fake-embedding", "input": ["b", "a b", "c"]})
    data = response.json()
    assert response.status_code == 200
    assert set(data) == {"object", "data", "model", "usage"}
    assert (data["object"], data["model"]) == ("list", "fake-embedding")
    assert [item["index"] for item in data["data"]] == [0, 1, 2]
    assert [item["object"] for item in data["data"]] == ["embedding"] * 3
    assert data["data"][1]["embedding"] == pytest.approx(vector_of("a b"), abs=1e-7)
    assert data["usage"] == {"prompt_tokens": 10, "total_tokens": 10}


async def test_base64_holds_the_same_floats(embedding: Api) -> None:
    client, _, _ = embedding
    response = await client.post("/v1/embeddings", json={"input": "a", "encoding_format": "base64"})
    packed = base64.b64decode(response.json()["data"][0]["embedding"])
    assert list(struct.unpack(f"<{DIMENSIONS}f", packed)) == vector_of("a")


async def test_token_ids_reach_the_engine_as_ids(embedding: Api) -> None:
    client, fake, _ = embedding
    response = await client.post("/v1/embeddings", json={"input": [101, 2023, 102], "user": "u"})
    assert response.json()["usage"]["prompt_tokens"] == 3
    assert fake.bodies == [{"input": [[101, 2023, 102]], "encoding_format": "base64"}]


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("please nan", 502, "vector_not_finite"),
        ("please fail", 502, "engine_error"),
        ("please babble", 502, "engine_error"),
        ([99999], 400, "request_refused"),
    ],
)
async def test_trouble_in_the_engine_has_a_status(embedding: Api, text: object, status: int, code: str) -> None:
    client, _, _ = embedding
    error_of(await client.post("/v1/embeddings", json={"input": text}), status, code)


async def test_a_long_text_is_the_clients_fault_and_says_how_long(embedding: Api) -> None:
    client, _, _ = embedding
    response = await client.post("/v1/embeddings", json={"input": ["short", "word " * 20]})
    error = error_of(response, 400, "context_length_exceeded")
    assert "22" in error["message"]
    assert "16" in error["message"]
    assert error["param"] == "input"


async def test_a_long_chat_is_the_clients_fault_and_says_how_long(chat: Api) -> None:
    client, _, _ = chat
    for stream in (False, True):
        body = {"messages": [{"role": "user", "content": "word " * 20}], "stream": stream}
        error = error_of(await client.post("/v1/chat/completions", json=body), 400, "context_length_exceeded")
        assert "20" in error["message"]
        assert "16" in error["message"]
        assert error["param"] == "messages"


async def test_the_wrong_kind_of_request_says_what_is_served(embedding: Api) -> None:
    client, _, _ = embedding
    body = {"messages": [{"role": "user", "content": "hi"}]}
    assert (
        "fake-embedding"
        in error_of(await client.post("/v1/chat/completions", json=body), 400, "wrong_task")["message"]
    )
    error_of(await client.post("/v1/completions", json={"prompt": "hi"}), 400, "wrong_task")


async def test_a_chat_service_refuses_embeddings(chat: Api) -> None:
    client, fake, _ = chat
    error_of(await client.post("/v1/embeddings", json={"input": "a"}), 400, "wrong_task")
    assert fake.bodies == []


async def test_unknown_models_and_paths_and_methods(embedding: Api) -> None:
    client, _, _ = embedding
    error_of(await client.post("/v1/embeddings", json={"input": "a", "model": "gpt"}), 404, "model_not_found")
    error_of(await client.get("/v1/models/gpt"), 404, "model_not_found")
    error_of(await client.get("/v2/nothing"), 404, "unknown_path")
    response = await client.get("/v1/embeddings")
    error_of(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


async def test_no_origin_is_allowed(embedding: Api) -> None:
    client, _, _ = embedding
    response = await client.get("/v1/models", headers={"Origin": "http://evil.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]
    error_of(
        await client.options("/v1/embeddings", headers={"Origin": "http://evil.example"}), 405, "method_not_allowed"
    )


async def test_models_lists_the_one_model(embedding: Api) -> None:
    client, _, _ = embedding
    one = {"id": "fake-embedding", "object": "model", "created": 1700000000, "owned_by": "sampan", "dimensions": 8}
    assert (await client.get("/v1/models")).json() == {"object": "list", "data": [one]}
    assert (await client.get("/v1/models/fake-embedding")).json() == one


@pytest.mark.parametrize("state", list(EngineState))
async def test_health_is_200_only_when_requests_are_answered(embedding: Api, state: EngineState) -> None:
    client, _, engine = embedding
    engine.state = state
    response = await client.get("/health")
    ready = state is EngineState.READY
    assert response.status_code == (200 if ready else 503)
    assert response.json()["status"] == ("ok" if ready else state.value)
    assert response.json()["engine"] == {"state": state.value, "variant": "fake", "restarts": 0, "device": None}


@pytest.mark.parametrize("declared", [True, False])
async def test_a_large_body_is_refused_whether_it_says_so_or_not(short_folder: Path, declared: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 100

    async with api(short_folder, EMBEDDING_MODEL, limits=Limits(body_bytes=2000)) as (client, fake, _):
        content = b" " * 4000 if declared else pieces()
        response = await client.post("/v1/embeddings", content=content)
        error_of(response, 413, "body_too_large")
        assert response.headers["connection"] == "close"
        assert fake.bodies == []


async def test_an_engine_that_does_not_answer_is_504(short_folder: Path) -> None:
    async with api(short_folder, EMBEDDING_MODEL, seconds=0.1) as (client, fake, _):
        error_of(await client.post("/v1/embeddings", json={"input": "please hang"}), 504, "engine_timeout")
        await asyncio.sleep(0.05)
        assert fake.cancelled == 1


async def test_no_engine_is_503_with_a_time_to_retry(embedding: Api, short_folder: Path) -> None:
    client, _, engine = embedding
    engine.state = EngineState.RESTARTING
    (short_folder / "engine.sock").unlink()
    response = await client.post("/v1/embeddings", json={"input": "a"})
    assert "restarting" in error_of(response, 503, "engine_unavailable")["message"]
    assert response.headers["retry-after"] == "1"


async def test_a_bug_is_500_in_the_envelope(embedding: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _, engine = embedding

    async def broken(_inputs: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "embed", broken)
    error_of(await client.post("/v1/embeddings", json={"input": "a"}), 500, "internal_error")


async def test_a_chat_answer_passes_unchanged(chat: Api) -> None:
    client, _, _ = chat
    body = {"model": "fake-chat", "messages": [{"role": "user", "content": "hi there"}], "temperature": 0}
    data = (await client.post("/v1/chat/completions", json=body)).json()
    assert data["choices"][0]["message"]["content"] == "You said: hi there"
    assert data["usage"]["total_tokens"] == 4


async def test_a_stream_that_breaks_ends_with_an_error_event(chat: Api) -> None:
    client, _, _ = chat
    body = {"messages": [{"role": "user", "content": "one break two"}], "stream": True}
    response = await client.post("/v1/chat/completions", json=body)
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert json.loads(events[0])["choices"][0]["delta"]["content"] == "one "
    assert json.loads(events[-1])["error"]["code"] == "engine_unavailable"
    assert "[DONE]" not in response.text


def test_every_code_is_documented_in_both_languages() -> None:
    for name in ("gateway.md", "gateway.zh-CN.md"):
        text = (Path(__file__).parents[3] / "docs" / name).read_text(encoding="utf-8")
        assert [code for code in CODES if f"`{code}`" not in text] == []
