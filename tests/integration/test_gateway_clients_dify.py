"""What Dify sends, recorded, and what it reads of the answers.

Read off langgenius/dify-official-plugins, ``models/openai_api_compatible/models/{llm/llm,rerank/rerank,
text_embedding/text_embedding}.py`` ("plugin" below), and the classes that it extends in langgenius/dify-plugin-sdks,
``python/dify_plugin/interfaces/model/openai_compatible/{llm,rerank,text_embedding}.py`` ("base"). Where no key was
given, the plugin sends an empty ``Authorization`` for embeddings and reranking, and the base ``Bearer None``.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.engine import vector_of
from tests.fakes.served import Served, served

pytestmark = pytest.mark.integration
EMBEDDINGS: dict[str, dict[str, Any]] = {
    "base, check of credentials": {"input": "ping", "model": "served"},
    "base": {"input": ["ping"], "model": "served", "user": "u-1", "encoding_format": "float"},
    "plugin": {"model": "served", "input": ["ping", "pong"]},
    "plugin, encoding_format set": {"model": "served", "input": ["ping"], "encoding_format": "float"},
    "plugin of 2025": {"model": "served", "input": "ping", "encoding_format": "float"},
}
CAPITALS = ["Carson City is the capital city of Nevada.", "Its capital is Saipan.", "Washington is the capital"]
RERANKS: dict[str, dict[str, Any]] = {
    "base": {"top_n": None, "return_documents": True},
    "plugin": {"top_n": 3},
}
PING = [{"role": "user", "content": "ping"}]
DIALOGUE = [{"role": "system", "content": "be short"}, {"role": "user", "content": "one two three"}]
SAMPLING = {"temperature": 0.7, "top_p": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0, "max_tokens": 512}
TOOL = {"name": "clock", "description": "tells the time", "parameters": {"type": "object", "properties": {}}}
SCHEMA = {"name": "answer", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
CHATS: dict[str, dict[str, Any]] = {
    "base, check of credentials": {"max_tokens": 5, "messages": PING},
    "plugin, check without thinking": {"max_tokens": 5, "messages": PING, "thinking": {"type": "disabled"}},
    "plugin, check with max_completion_tokens": {"max_completion_tokens": 16, "messages": PING, "stream": False},
    "base": {"stream": False, **SAMPLING, "messages": DIALOGUE, "stop": ["\nObservation"], "user": "u-1"},
    "tools": {
        "stream": False,
        **SAMPLING,
        "messages": DIALOGUE,
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": TOOL}],
    },
    "JSON schema": {
        "stream": False,
        **SAMPLING,
        "messages": DIALOGUE,
        "response_format": {"type": "json_schema", "json_schema": SCHEMA},
    },
    "extended compatibility": {
        "stream": False,
        **SAMPLING,
        "messages": DIALOGUE,
        "chat_template_kwargs": {"enable_thinking": False, "thinking": False},
        "thinking": {"type": "disabled"},
        "enable_thinking": False,
    },
}


@pytest.fixture(scope="module")
def embedding() -> Iterator[Served]:
    with served() as service:
        yield service


@pytest.fixture(scope="module")
def chat() -> Iterator[Served]:
    with served(task="chat") as service:
        yield service


@pytest.fixture(scope="module")
def reranker() -> Iterator[Served]:
    with served(task="rerank") as service:
        yield service


def post(service: Served, path: str, body: object, authorization: str | None) -> bytes:
    """The base URL in Dify's settings ends in ``/v1``. Raises HTTPError for anything but 200."""
    headers = {"Content-Type": "application/json", "Accept-Charset": "utf-8"}
    headers |= {} if authorization is None else {"Authorization": authorization}
    request = urllib.request.Request(f"{service.url}/v1/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        assert response.status == 200
        found: bytes = response.read()
    return found


@pytest.mark.parametrize("authorization", [None, "", "Bearer sk-1"])
@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(embedding: Served, name: str, authorization: str | None) -> None:
    asked = EMBEDDINGS[name]
    told = json.loads(post(embedding, "embeddings", asked, authorization))
    texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
    assert [item["embedding"] for item in told["data"]] == [pytest.approx(vector_of(text)) for text in texts]
    assert told["model"] == "served"
    assert told["usage"]["prompt_tokens"] == told["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("authorization", ["", "Bearer None"])
@pytest.mark.parametrize("name", RERANKS)
def test_reranks(reranker: Served, name: str, authorization: str) -> None:
    body = {"model": "served", "query": "What is the capital of the United States?", "documents": CAPITALS}
    told = json.loads(post(reranker, "rerank", body | RERANKS[name], authorization))
    assert sorted(result["index"] for result in told["results"]) == [0, 1, 2]
    for result in told["results"]:
        assert 0 <= result["relevance_score"] <= 1
        if name == "base":
            assert result["document"]["text"] == CAPITALS[result["index"]]


@pytest.mark.parametrize("name", CHATS)
def test_chats(chat: Served, name: str) -> None:
    told = json.loads(post(chat, "chat/completions", {"model": "served", **CHATS[name]}, "Bearer sk-1"))
    assert told["object"] == "chat.completion"
    assert told["model"] == "served"
    assert told["choices"][0]["message"]["content"].startswith("You said: ")
    assert {"prompt_tokens", "completion_tokens"} <= told["usage"].keys()


@pytest.mark.parametrize("kind", ["check of credentials", "chat", "completion"])
def test_streams(chat: Served, kind: str) -> None:
    """Events are cut at an empty line; each but the last is JSON with a list of choices; usage is in the last one."""
    body: dict[str, object] = {"model": "served", "stream": True}
    body |= {"max_tokens": 10} if kind == "check of credentials" else {**SAMPLING, "user": "u-1"}
    body |= {} if kind == "check of credentials" else {"stream_options": {"include_usage": True}}
    body |= {"prompt": "one two three"} if kind == "completion" else {"messages": DIALOGUE}
    path = "completions" if kind == "completion" else "chat/completions"
    text, usage = "", None
    events = post(chat, path, body, "Bearer sk-1").decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    for event in events[:-2]:
        chunk: dict[str, Any] = json.loads(event.strip().removeprefix("data: "))
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            text += choice["text"] if kind == "completion" else choice["delta"]["content"]
    assert text == "one two three "
    assert (usage is None) == (kind == "check of credentials")


def test_a_completion_is_checked(chat: Served) -> None:
    told = json.loads(post(chat, "completions", {"model": "served", "max_tokens": 5, "prompt": "ping"}, None))
    assert told["object"] == "text_completion"
    assert isinstance(told["choices"][0]["text"], str)
