"""The official client, over HTTP, against the gateway with a real llama-server behind it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import openai
import pytest
import pytest_asyncio
import uvicorn
from openai.types.chat import ChatCompletionMessageParam
from tests.fakes.started_engine import LIMIT, running

from sampan.gateway.app import create_app
from sampan.gateway.settings import ServedModel

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@contextlib.asynccontextmanager
async def client(task: str) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of a whole gateway for the real model of ``task``; skips where there is none."""
    async with running("real", task) as parts:
        listener = socket.create_server(("127.0.0.1", 0))
        app = create_app(parts.server, ServedModel(parts.command.model_id, task))
        server = uvicorn.Server(uvicorn.Config(app, http="httptools", ws="none", lifespan="off", log_config=None))
        serving = asyncio.create_task(server.serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=300) as asking:
            yield asking
        server.should_exit = True
        await serving


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedding() -> AsyncIterator[openai.AsyncOpenAI]:
    async with client("embedding") as asking:
        yield asking


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat() -> AsyncIterator[openai.AsyncOpenAI]:
    async with client("chat") as asking:
        yield asking


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_embeddings_say_what_is_alike(embedding: openai.AsyncOpenAI) -> None:
    texts = ["How do I open an account?", "What must I do to open an account?", "It rains in Beijing."]
    found = await embedding.embeddings.create(model="real-embedding", input=texts)
    account, same, weather = (item.embedding for item in found.data)
    assert dot(account, same) > dot(account, weather)
    floats = await embedding.embeddings.create(model="real-embedding", input=texts, encoding_format="float")
    assert dot(floats.data[0].embedding, account) == pytest.approx(1.0, abs=1e-3)
    assert found.usage.prompt_tokens == found.usage.total_tokens > len(texts)


async def test_too_long_a_text_is_a_bad_request_with_count_and_limit(embedding: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await embedding.embeddings.create(model="real-embedding", input="word " * 200)
    assert caught.value.code == "context_length_exceeded"
    assert str(LIMIT) in caught.value.message


QUESTION: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say yes."}]


async def test_a_chat_whole_and_streamed_say_the_same(chat: openai.AsyncOpenAI) -> None:
    whole = await chat.chat.completions.create(model="real-chat", messages=QUESTION, max_tokens=8, temperature=0)
    stream = await chat.chat.completions.create(
        model="real-chat",
        messages=QUESTION,
        max_tokens=8,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    pieces = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in pieces if chunk.choices)
    assert text
    assert text == whole.choices[0].message.content
    assert pieces[-1].usage is not None


async def test_a_completion(chat: openai.AsyncOpenAI) -> None:
    found = await chat.completions.create(model="real-chat", prompt="One two three", max_tokens=4, temperature=0)
    assert found.choices[0].text


async def test_a_wrong_setting_is_a_bad_request(chat: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await chat.chat.completions.create(model="real-chat", messages=QUESTION, extra_body={"grammar": "root ::= ("})
    assert caught.value.code == "request_refused"
