"""Bounds: of the queue, of texts, of bodies."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message
from tests.fakes.engine import FakeLlamaServer
from tests.fakes.gateway import EMBEDDING_MODEL, fake_engine
from tests.unit.gateway.engines import ScriptedEngine

from sampan.gateway import bodies
from sampan.gateway.admission import Admission
from sampan.gateway.app import create_app
from sampan.gateway.bodies import read_body
from sampan.gateway.call import Call
from sampan.gateway.engine import InputTooLongError, TextOrTokens
from sampan.gateway.envelope import ApiError
from sampan.gateway.lengths import Cut, Lengths, estimate, surely_fits
from sampan.gateway.settings import Limits, ServedModel, longest_input
from sampan.spec.plan import EngineSettings

MODEL = ServedModel("fake-embedding", "embedding", 8, tokens=16)


def client_of(engine: object, limits: Limits, model: ServedModel = MODEL) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(engine, model, limits), raise_app_exceptions=False)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://gateway")


def test_the_queue_is_bounded_by_requests_and_by_tokens() -> None:
    admission = Admission(Limits(queue_requests=2, queue_tokens=100))
    with admission.admitted(60), contextlib.ExitStack() as more:
        with pytest.raises(ApiError) as tokens:
            more.enter_context(admission.admitted(60))
        more.enter_context(admission.admitted(40))
        with pytest.raises(ApiError) as requests:
            more.enter_context(admission.admitted(0))
    assert [error.value.status for error in (tokens, requests)] == [429, 429]
    assert (admission.requests, admission.tokens, admission.refused) == (0, 0, 2)
    with admission.admitted(5000):
        assert admission.tokens == 5000, "one request alone always fits"


def test_the_time_to_retry_follows_what_the_engine_does() -> None:
    admission = Admission(Limits())
    for _ in range(100):
        admission.measured(100, 1.0)
    with admission.admitted(1000):
        assert 9 <= admission.wait() <= 11
    assert admission.wait() == 1


async def test_many_clients_get_200_or_429_and_no_other(short_folder: Path) -> None:
    fake = FakeLlamaServer(embeddings=True, alias="fake-embedding")
    async with fake_engine(short_folder, fake) as engine:
        client = client_of(engine, Limits(queue_requests=8))
        asks = [client.post("/v1/embeddings", json={"input": f"please wait {number}"}) for number in range(40)]
        answers = await asyncio.gather(*asks)
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(200), statuses.count(429)) == (8, 32)
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["code"] == "queue_full"


async def test_the_longest_text_is_taken_and_one_token_more_is_not(short_folder: Path) -> None:
    fake = FakeLlamaServer(embeddings=True, ubatch=16)
    async with fake_engine(short_folder, fake) as engine:
        client = client_of(engine, Limits())
        just = await client.post("/v1/embeddings", json={"input": "word " * 14})
        over = await client.post("/v1/embeddings", json={"input": ["a", "word " * 15]})
        ids = await client.post("/v1/embeddings", json={"input": [7] * 17})
    assert (just.status_code, just.json()["usage"]["prompt_tokens"]) == (200, 16)
    for answer in (over, ids):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "context_length_exceeded")
        assert "17" in error["message"]
        assert "16" in error["message"]
    assert [body for body in fake.bodies if "input" in body and "word " * 15 in body["input"]] == []


@pytest.mark.parametrize(("cut", "kept"), [("end", [0, 1]), ("START", [18, 19]), (True, [0, 1])])
async def test_a_long_text_is_cut_where_asked_and_that_is_said(
    short_folder: Path, cut: object, kept: list[int]
) -> None:
    fake = FakeLlamaServer(embeddings=True, ubatch=16)
    async with fake_engine(short_folder, fake) as engine:
        body = {"input": ["a", " ".join(f"w{number:02}" for number in range(20))], "truncate": cut}
        answer = await client_of(engine, Limits()).post("/v1/embeddings", json=body)
    assert answer.json()["truncated"] == [{"index": 1, "tokens": 22, "kept": 16}]
    sent = next(body["input"][1] for body in fake.bodies if "input" in body)
    words = [2000 + sum(f"w{number:02}".encode()) % 1000 for number in range(20)]
    start = 0 if kept[0] == 0 else 6
    assert sent == [101, *words[start : start + 14], 102], "start and end of the text stay"


async def test_an_unknown_way_of_cutting_and_a_huge_text_are_refused(short_folder: Path) -> None:
    async with fake_engine(short_folder, FakeLlamaServer(embeddings=True)) as engine:
        client = client_of(engine, Limits(text_bytes=100))
        wrong = await client.post("/v1/embeddings", json={"input": "a", "truncate": "middle"})
        huge = await client.post("/v1/embeddings", json={"input": ["a", "字" * 40]})
    assert [answer.json()["error"]["code"] for answer in (wrong, huge)] == ["invalid_value", "text_too_large"]
    assert [answer.json()["error"]["param"] for answer in (wrong, huge)] == ["truncate", "input"]


async def test_a_deadline_of_the_client_is_kept(short_folder: Path) -> None:
    async with fake_engine(short_folder, FakeLlamaServer(embeddings=True)) as engine:
        client = client_of(engine, Limits(), EMBEDDING_MODEL)
        for name in ("X-Request-Timeout", "X-Stainless-Read-Timeout"):
            late = await client.post("/v1/embeddings", json={"input": "please hang"}, headers={name: "0.1"})
            assert (late.status_code, late.json()["error"]["code"]) == (504, "deadline_exceeded")
        wrong = await client.post("/v1/embeddings", json={"input": "a"}, headers={"X-Request-Timeout": "soon"})
        assert wrong.status_code == 400
        lane = await client.post("/v1/embeddings", json={"input": "a"}, headers={"X-Sampan-Lane": "fast"})
        assert lane.status_code == 400


def dribbling(size: int, *, declared: bool, released: asyncio.Event) -> Call:
    """A request whose body's second half comes when ``released``."""
    halves = [b"x" * (size // 2)] * 2

    async def receive() -> Message:
        if len(halves) == 1:
            await released.wait()
        return {"type": "http.request", "body": halves.pop(), "more_body": bool(halves)}

    headers = [(b"content-length", str(size).encode())] if declared else []
    return Call({"type": "http", "headers": headers}, receive, 0.0)


@pytest.mark.parametrize("declared", [True, False])
async def test_large_bodies_are_bounded_together(declared: bool) -> None:
    admission = Admission(Limits(bodies_bytes=500_000))
    released = asyncio.Event()
    reading = [
        asyncio.ensure_future(read_body(dribbling(200_000, declared=declared, released=released), admission))
        for _ in range(6)
    ]
    await asyncio.sleep(0.01)
    released.set()
    found = await asyncio.gather(*reading, return_exceptions=True)
    whole = [body for body in found if isinstance(body, bytes)]
    assert [len(body) for body in whole] == [200_000] * len(whole)
    assert len(whole) == 2 if declared else len(whole) < 6, "of unknown length: the bound holds, nobody may win"
    assert {error.code for error in found if isinstance(error, ApiError)} == {"queue_full"}
    assert admission.body_bytes == 0


async def test_a_body_that_dribbles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_SECONDS", 0.05)
    admission = Admission(Limits(body_bytes=100))
    with pytest.raises(ApiError) as caught:
        await read_body(dribbling(100, declared=False, released=asyncio.Event()), admission)
    assert (caught.value.status, caught.value.code) == (408, "body_too_slow")
    assert admission.body_bytes == 0


def test_the_limit_of_a_text_follows_from_the_engines_settings() -> None:
    def settings_of(*, embedding: bool, unified: bool) -> EngineSettings:
        return EngineSettings(2048, 1024, 512, 4, unified_kv=unified, threads=1, embedding=embedding)

    assert longest_input(settings_of(embedding=True, unified=True)) == 512
    assert longest_input(settings_of(embedding=False, unified=True)) == 2048
    assert longest_input(settings_of(embedding=False, unified=False)) == 512


async def test_short_texts_are_never_counted_and_long_ones_in_one_call() -> None:
    engine = ScriptedEngine()
    lengths = Lengths(engine, 16)
    inputs: list[TextOrTokens] = ["short", "one two three four five", "五个汉字吧", (1, 2, 3)]
    assert await lengths.fit(inputs) == (inputs, ())
    assert engine.counted == ["one two three four five", "五个汉字吧"]
    with pytest.raises(InputTooLongError) as caught:
        await lengths.fit(["a", "b " * 20])
    assert (caught.value.tokens, caught.value.limit, caught.value.index) == (22, 16, 1)
    _, cuts = await lengths.fit([tuple(range(20)), "b " * 20], "end")
    assert cuts == (Cut(0, 20, 16), Cut(1, 22, 16))


def test_a_sign_that_opens_into_many_is_counted() -> None:
    assert not surely_fits("ﷺ" * 4, 24)
    assert surely_fits("ab", 8)


@settings(max_examples=40)
@given(st.text(max_size=40))
def test_an_estimate_is_near_bytes_and_never_nothing(text: str) -> None:
    assert 2 <= estimate(text) <= 2 + len(text.encode("utf-8", "surrogatepass")) + 1
