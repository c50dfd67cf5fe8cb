"""The official client over real HTTP, and clients that leave."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest
from tests.fakes.engine import vector_of
from tests.fakes.gateway import CHAT_MODEL, EMBEDDING_MODEL, ThreadedGateway, gateway


@pytest.fixture(scope="module")
def embedding(module_folder: Path) -> Iterator[ThreadedGateway]:
    (module_folder / "e").mkdir()
    with gateway(module_folder / "e", EMBEDDING_MODEL) as running:
        yield running


@pytest.fixture(scope="module")
def chat(module_folder: Path) -> Iterator[ThreadedGateway]:
    (module_folder / "c").mkdir()
    with gateway(module_folder / "c", CHAT_MODEL) as running:
        yield running


def client_of(running: ThreadedGateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 3
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.01)


def test_embeddings_by_the_clients_default_and_as_floats(embedding: ThreadedGateway) -> None:
    texts = ["how do I open an account", "a", "怎么开户"]
    client = client_of(embedding)
    by_default = client.embeddings.create(model="fake-embedding", input=texts)  # the client asks for base64
    as_floats = client.embeddings.create(model="fake-embedding", input=texts, encoding_format="float")
    for found in (by_default, as_floats):
        assert [item.index for item in found.data] == [0, 1, 2]
        assert [item.embedding for item in found.data] == [pytest.approx(vector_of(text), abs=1e-7) for text in texts]
        assert found.usage.prompt_tokens == 14


def test_embeddings_of_one_text_and_of_token_ids(embedding: ThreadedGateway) -> None:
    client = client_of(embedding)
    assert len(client.embeddings.create(model="fake-embedding", input="a").data) == 1
    assert len(client.embeddings.create(model="fake-embedding", input=[[1, 2], [3]]).data) == 2


def test_the_clients_exceptions_are_the_right_ones(embedding: ThreadedGateway) -> None:
    client = client_of(embedding)
    with pytest.raises(openai.NotFoundError) as missing:
        client.embeddings.create(model="gpt", input="a")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as long:
        client.embeddings.create(model="fake-embedding", input="word " * 600)
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "input")
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="fake-embedding", messages=[{"role": "user", "content": "hi"}])
    with pytest.raises(openai.InternalServerError) as broken:
        client.embeddings.create(model="fake-embedding", input="please nan")
    assert broken.value.code == "vector_not_finite"


def test_models(embedding: ThreadedGateway) -> None:
    client = client_of(embedding)
    assert [model.id for model in client.models.list()] == ["fake-embedding"]
    assert client.models.retrieve("fake-embedding").owned_by == "sampan"


def test_chat_whole_and_streamed(chat: ThreadedGateway) -> None:
    client = client_of(chat)
    whole = client.chat.completions.create(model="fake-chat", messages=[{"role": "user", "content": "hi"}])
    assert whole.choices[0].message.content == "You said: hi"
    stream = client.chat.completions.create(
        model="fake-chat", messages=[{"role": "user", "content": "one two three"}], stream=True
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "one two three "


def test_completions_whole_and_streamed(chat: ThreadedGateway) -> None:
    client = client_of(chat)
    assert client.completions.create(model="fake-chat", prompt="hi").choices[0].text == "hi"
    stream = client.completions.create(model="fake-chat", prompt="one two", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == "one two "


def test_a_broken_stream_raises_in_the_client(chat: ThreadedGateway) -> None:
    stream = client_of(chat).chat.completions.create(
        model="fake-chat", messages=[{"role": "user", "content": "one break two"}], stream=True
    )
    with pytest.raises(openai.APIError):
        list(stream)


def test_pieces_come_before_the_stream_ends_and_leaving_stops_the_engine(chat: ThreadedGateway) -> None:
    before = chat.fake.cancelled
    stream = client_of(chat).chat.completions.create(
        model="fake-chat", messages=[{"role": "user", "content": "one hang two"}], stream=True
    )
    assert next(iter(stream)).choices[0].delta.content == "one "  # the engine hangs after the second word
    wait_for(lambda: chat.fake.computing == 1)
    stream.close()
    wait_for(lambda: chat.fake.cancelled == before + 1)
    assert chat.fake.computing == 0


@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        ("embedding", "/v1/embeddings", {"input": "please hang"}),
        ("chat", "/v1/chat/completions", {"messages": [{"role": "user", "content": "please hang"}]}),
    ],
)
def test_a_client_that_leaves_while_waiting_stops_the_engine(
    request: pytest.FixtureRequest, kind: str, path: str, body: dict[str, object]
) -> None:
    running: ThreadedGateway = request.getfixturevalue(kind)
    before = running.fake.cancelled
    content = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content)
        wait_for(lambda: running.fake.computing == 1)
    wait_for(lambda: running.fake.cancelled == before + 1)
