"""What the gateway needs of llama-server: the fake and the real one must both keep it.

The real one is taken from the store, or named by SAMPAN_TEST_ENGINE, SAMPAN_TEST_EMBEDDING_WEIGHTS and
SAMPAN_TEST_CHAT_WEIGHTS.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.fakes import real_engine
from tests.fakes.started_engine import LIMIT, READY_SECONDS, command, needed, running, settings

from sampan.errors import ServiceError
from sampan.gateway.batching import Batching
from sampan.gateway.engine import EngineRefusedError, EngineState, EngineUnavailableError, InputTooLongError
from sampan.gateway.engine_args import engine_argv, flags
from sampan.gateway.lengths import Lengths
from sampan.gateway.llama_server import LlamaCommand, LlamaServer
from sampan.gateway.meter import Meter
from sampan.gateway.settings import Limits, ServedModel
from sampan.gateway.vectors import to_floats
from sampan.spec.plan import EngineSettings

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]
MORE_THAN_ONE_CONNECTION = 230  # llama-server closes a connection after 100 requests


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["fake", "real"])
async def embedding(request: pytest.FixtureRequest) -> AsyncIterator[LlamaServer]:
    async with running(request.param, "embedding") as parts:
        yield parts.server


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["fake", "real"])
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[LlamaServer]:
    async with running(request.param, "chat") as parts:
        yield parts.server


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(to_floats(one), to_floats(other), strict=True))


async def test_texts_come_back_in_order_as_unit_vectors(embedding: LlamaServer) -> None:
    texts = ("how do I open an account", "weather in Beijing", "a")
    together = await embedding.embed(texts)
    assert len({len(packed) for packed in together.vectors}) == 1
    assert together.tokens > len(texts)
    for text, packed in zip(texts, together.vectors, strict=True):
        assert math.isclose(cosine(packed, packed), 1.0, abs_tol=1e-4)
        alone = await embedding.embed((text,))
        assert cosine(alone.vectors[0], packed) > 0.999
    assert cosine(*together.vectors[:2]) < 0.99


async def test_token_ids_are_taken_as_they_are(embedding: LlamaServer) -> None:
    found = await embedding.embed(((101, 2023, 102), (101, 102)))
    assert (len(found.vectors), found.tokens) == (2, 5)


async def test_a_text_over_the_batch_is_too_long_with_count_and_limit(embedding: LlamaServer) -> None:
    with pytest.raises(InputTooLongError) as caught:
        await embedding.embed(("short", "word " * 100))
    assert caught.value.limit == LIMIT
    assert caught.value.tokens is not None
    assert caught.value.tokens > LIMIT


async def test_counts_are_those_that_embedding_uses(embedding: LlamaServer) -> None:
    texts = ("a", "how do I open an account", "weather in Beijing today", "a")
    counts = await embedding.count(texts)
    alone = [(await embedding.embed((text,))).tokens for text in texts]
    assert list(counts) == alone
    assert (await embedding.count(("a",)))[0] == len(await embedding.tokenize("a"))
    assert await embedding.count(("",)) == (len(await embedding.tokenize("")),)


async def test_tokens_give_the_same_vector_as_their_text(embedding: LlamaServer) -> None:
    tokens = await embedding.tokenize("weather in Beijing")
    bare = await embedding.tokenize("weather in Beijing", special=False)
    assert len(bare) < len(tokens)
    text, ids = await embedding.embed(("weather in Beijing",)), await embedding.embed((tokens,))
    assert text.tokens == ids.tokens == len(tokens)


async def test_the_longest_text_is_taken_and_one_token_more_is_cut_or_refused(embedding: LlamaServer) -> None:
    lengths = Lengths(embedding, LIMIT)
    words = LIMIT - (await embedding.count(("",)))[0]
    just, over = " ".join(["word"] * words), " ".join(["word"] * (words + 1))
    assert (await lengths.fit((just,)))[1] == ()
    assert (await embedding.embed((just,))).tokens == LIMIT
    with pytest.raises(InputTooLongError) as caught:
        await lengths.fit((over,))
    assert (caught.value.tokens, caught.value.limit) == (LIMIT + 1, LIMIT)
    fitted, cuts = await lengths.fit((over,), "end")
    assert (cuts[0].tokens, cuts[0].kept) == (LIMIT + 1, LIMIT)
    assert fitted[0] == await embedding.tokenize(just)
    assert (await embedding.embed(fitted)).tokens == LIMIT


async def test_passes_of_many_requests_give_each_its_own(embedding: LlamaServer) -> None:
    over = Batching(embedding, ServedModel("m", "embedding"), Limits(), Meter(), slots=1, pass_tokens=LIMIT)
    texts = [f"text number {index} of many" for index in range(12)]
    found = await asyncio.gather(*(over.embed([text]) for text in texts))
    for text, each in zip(texts, found, strict=True):
        alone = await embedding.embed((text,))
        assert cosine(alone.vectors[0], each.vectors[0]) > 0.999
        assert each.tokens == alone.tokens


async def test_tokens_outside_the_vocabulary_are_refused(embedding: LlamaServer) -> None:
    with pytest.raises(EngineRefusedError):
        await embedding.embed(((2_000_000_000,),))


async def test_no_request_is_lost_where_the_engine_changes_connections(embedding: LlamaServer) -> None:
    for _ in range(MORE_THAN_ONE_CONNECTION):
        await embedding.embed(("a",))


async def test_many_at_once_are_all_answered(embedding: LlamaServer) -> None:
    found = await asyncio.gather(*(embedding.embed((f"text {index}",)) for index in range(24)))
    assert len(found) == 24


async def test_an_engine_for_chats_refuses_embeddings(chat: LlamaServer) -> None:
    with pytest.raises(EngineRefusedError):
        await chat.embed(("a",))


async def generate(server: LlamaServer, path: str, **body: object) -> tuple[str, bytes]:
    running = await server.generate(path, json.dumps({"max_tokens": 4, "temperature": 0, **body}).encode())
    try:
        return running.content_type, b"".join([chunk async for chunk in running.chunks()])
    finally:
        await running.close()


QUESTION = [{"role": "user", "content": "Say yes."}]


async def test_a_whole_chat(chat: LlamaServer) -> None:
    kind, raw = await generate(chat, "/v1/chat/completions", messages=QUESTION)
    data = json.loads(raw)
    assert kind == "application/json"
    assert data["choices"][0]["message"]["role"] == "assistant"
    assert data["usage"]["completion_tokens"] > 0
    assert data["model"].endswith("-chat"), "the public model id"


async def test_a_streamed_chat_and_completion(chat: LlamaServer) -> None:
    for path, more in (
        ("/v1/chat/completions", {"messages": QUESTION}),
        ("/v1/completions", {"prompt": "One two three"}),
    ):
        kind, raw = await generate(chat, path, stream=True, **more)
        assert kind == "text/event-stream"
        assert raw.startswith(b"data: {")
        assert raw.rstrip().endswith(b"data: [DONE]")


async def test_a_chat_over_the_context_is_too_long_with_count_and_limit(chat: LlamaServer) -> None:
    for stream in (False, True):
        with pytest.raises(InputTooLongError) as caught:
            await generate(chat, "/v1/completions", prompt="word " * 300, stream=stream)
        assert caught.value.tokens is not None
        assert caught.value.limit is not None
        assert caught.value.tokens > caught.value.limit >= LIMIT


async def test_a_generation_that_is_closed_early_leaves_the_engine_free(chat: LlamaServer) -> None:
    body = {"prompt": "Once upon a time", "stream": True, "max_tokens": 40}
    running = await chat.generate("/v1/completions", json.dumps(body).encode())
    async for _ in running.chunks():
        break
    await running.close()
    await asyncio.wait_for(generate(chat, "/v1/completions", prompt="One"), 60)  # it has one slot only


@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_a_killed_engine_comes_back_and_a_stopped_one_is_gone(kind: str) -> None:
    async with running(kind, "embedding") as parts:
        first = parts.server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        while parts.server.status.restarts == 0 or parts.server.status.state is not EngineState.READY:
            await asyncio.sleep(0.02)
        assert (await parts.server.embed(("a",))).tokens > 0
        second = parts.server.pid
        assert second is not None
        assert second != first
    assert not Path(f"/proc/{second}").exists()
    assert not parts.command.socket.exists()
    with pytest.raises(EngineUnavailableError):
        await parts.server.embed(("a",))


@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_weights_that_are_none_end_the_start_with_the_engines_words(kind: str, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gw") as name:
        what = command(kind, "embedding", Path(name))
        missing = LlamaCommand(what.executable, kind, tmp_path / "none.gguf", what.socket, what.settings, 1, "none")
        server = LlamaServer(missing, request_seconds=5)
        await server.start()
        with pytest.raises(ServiceError) as caught:
            await server.wait_ready(READY_SECONDS)
        assert caught.value.key == "gateway.engine-failed"
        assert "none.gguf" in caught.value.message
        await server.stop()


async def test_every_flag_is_known_to_the_real_engine() -> None:
    executable = needed(real_engine.executable(), "llama-server")
    shown = subprocess.run([executable, "--help"], capture_output=True, text=True, check=True).stdout
    known = {word.rstrip(",") for word in shown.split() if word.startswith("--")}
    for task in ("embedding", "chat"):
        for unified in (True, False):
            given = EngineSettings(
                **{**settings(task).__dict__, "unified_kv": unified, "pooling": "mean", "load_mode": "mmap"}
            )
            argv = engine_argv(executable, Path("/m.gguf"), Path("/e.sock"), given, threads=1, alias="a")
            assert [flag for flag in flags(argv) if flag not in known] == []
