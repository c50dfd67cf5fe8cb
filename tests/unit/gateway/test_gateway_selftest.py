from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.fakes.engine import DIMENSIONS, FakeLlamaServer, vector_of
from tests.fakes.gateway import CHAT_MODEL, EMBEDDING_MODEL, fake_engine, gateway

from sampan.errors import ExitCode, ServiceError
from sampan.gateway.comparison import SelfTest, cosine, judge_chat, judge_embedding, judge_pair
from sampan.gateway.selftest import consistency, run_selftest, selftest
from sampan.gateway.settings import ServedModel
from sampan.spec import codec
from sampan.spec.weights import GoldenChat, GoldenEmbedding, GoldenPair, GoldenSet


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((1.0, 0.0), (2.0, 0.0), 1.0),
        ((1.0, 0.0), (0.0, 3.0), 0.0),
        ((1.0, 1.0), (-1.0, -1.0), -1.0),
        ((1.0, 0.0), (1.0, 1.0), math.sqrt(0.5)),
        ((1.0,), (1.0, 0.0), 0.0),
        ((0.0, 0.0), (1.0, 0.0), 0.0),
        ((math.nan, 1.0), (1.0, 0.0), 0.0),
        ((math.inf, 1.0), (1.0, 0.0), 0.0),
    ],
)
def test_cosine(one: tuple[float, ...], other: tuple[float, ...], expected: float) -> None:
    assert cosine(one, other) == pytest.approx(expected)


def test_the_worst_answer_to_a_text_counts() -> None:
    golden = GoldenEmbedding("a", (1.0, 0.0))
    good, bad = (1.0, 0.01), (1.0, 1.0)
    assert judge_embedding(golden, [good, good], 0.99).ok
    result = judge_embedding(golden, [good, bad], 0.99)
    assert not result.ok
    assert result.score == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize(
    ("reference", "answer", "minimum", "score", "ok"),
    [
        (" Paris. It is", " Paris. It was", 8, 11, True),
        (" Paris. It is", " London", 8, 1, False),
        (" Yes", " Yes, of course", 8, 4, True),
        (" Yes", " Ye", 8, 3, False),
        ("", "anything", 8, 0, False),
    ],
)
def test_a_continuation_must_begin_like_the_reference(
    reference: str, answer: str, minimum: int, score: float, ok: bool
) -> None:
    result = judge_chat(GoldenChat("p", reference), answer, minimum)
    assert (result.score, result.ok) == (score, ok)


def test_an_empty_golden_set_proves_nothing() -> None:
    assert not SelfTest("m", "u").ok


def golden_embeddings(*texts: str, bend: float = 0.0) -> GoldenSet:
    items = []
    for text in texts:
        vector = vector_of(text)
        vector[0] += bend
        items.append(GoldenEmbedding(text, tuple(vector)))
    return GoldenSet("fake-embedding", "the fake itself", embeddings=tuple(items))


def test_a_right_service_passes_over_tcp(short_folder: Path) -> None:
    with gateway(short_folder, EMBEDDING_MODEL) as running:
        result = selftest(f"{running.url}/v1/", golden_embeddings("a", "b c"))
        assert result.ok
        assert [entry.score for entry in result.embeddings] == [pytest.approx(1.0), pytest.approx(1.0)]
        assert result.model == "fake-embedding"
        assert '"schema": "sampan/self-test/1"' in codec.to_json(result)
        assert [body["input"] for body in running.fake.bodies] == [["a", "b c"], ["a"], ["b c"]]
        assert selftest(running.url, golden_embeddings("a", "b c"), once=True).ok
        assert [body["input"] for body in running.fake.bodies[3:]] == [["a", "b c"]]
        bent = selftest(running.url, golden_embeddings("a", bend=0.5))
        assert not bent.ok
        with pytest.raises(ServiceError) as caught:
            selftest(running.url, golden_embeddings("please nan"))
        assert caught.value.key == "gateway.wrong-answer"
        assert "vector_not_finite" in str(caught.value)


def test_once_asks_for_all_texts_in_one_request(short_folder: Path) -> None:
    with gateway(short_folder, EMBEDDING_MODEL) as running:
        before = len(running.fake.bodies)
        assert selftest(running.url, golden_embeddings("a", "b c"), once=True).ok
        assert len(running.fake.bodies) - before == 1


def test_a_chat_service_is_asked_for_continuations(short_folder: Path) -> None:
    with gateway(short_folder, CHAT_MODEL) as running:  # the fake continues a prompt with itself
        golden = GoldenSet("m", "r", chats=(GoldenChat("once upon a", "once upon"), GoldenChat("x", "y")))
        assert [entry.ok for entry in selftest(running.url, golden).chats] == [True, False]


def test_without_a_reference_the_service_is_compared_with_itself(short_folder: Path) -> None:
    with gateway(short_folder, EMBEDDING_MODEL) as running:
        result = consistency(running.url, "embedding")
        assert result.ok
        assert (result.basis, len(result.embeddings)) == ("consistency", 3)
        assert [len(body["input"]) for body in running.fake.bodies] == [3, 1, 1, 1]
    with gateway(short_folder, CHAT_MODEL) as running:
        result = consistency(running.url, "chat")
        assert result.ok
        assert result.chats[0].score > 0


def test_a_reranker_is_held_to_the_models_own_scores(short_folder: Path) -> None:
    with gateway(short_folder, ServedModel("fake-rerank", "rerank", None, 1700000000)) as running:
        right = (GoldenPair("a b c", "c d a", 2.0), GoldenPair("x", "y", 0.05), GoldenPair("a b c", "b", 1.0))
        result = selftest(running.url, GoldenSet("m", "r", pairs=right))
        assert [(entry.text, entry.ok) for entry in result.pairs] == [("c d a", True), ("b", True), ("y", True)]
        assert result.ok
        wrong = GoldenSet("m", "r", pairs=(GoldenPair("a b c", "c d a", 2.2), right[1]))
        assert [entry.ok for entry in selftest(running.url, wrong).pairs] == [False, True]
        again = consistency(running.url, "rerank")
        assert (again.basis, len(again.pairs), again.ok) == ("consistency", 3, True)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_wrong(score: float) -> None:
    assert not judge_pair(GoldenPair("q", "d", 1.0), score, 0.1).ok


def test_a_chat_that_says_nothing_is_not_consistent() -> None:
    assert not judge_chat(GoldenChat("prompt", ""), "", 0).ok


def test_once_asks_for_no_more_of_a_continuation_than_is_compared(short_folder: Path) -> None:
    with gateway(short_folder, CHAT_MODEL) as running:
        golden = GoldenSet("m", "r", minimum_prefix=4, chats=(GoldenChat("once upon a time", "once upon"),))
        assert selftest(running.url, golden, once=True).ok
        assert running.fake.bodies[-1]["max_tokens"] == len("once")


async def test_what_is_no_gateway_is_a_wrong_answer_over_a_unix_socket(short_folder: Path) -> None:
    async with fake_engine(short_folder, FakeLlamaServer(embeddings=True)):  # it has no /v1/models
        with pytest.raises(ServiceError) as caught:
            await run_selftest(f"unix:{short_folder}/engine.sock", golden_embeddings("a"))
    assert (caught.value.key, caught.value.exit_code) == ("gateway.wrong-answer", ExitCode.SERVICE)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "unix:/nowhere/engine.sock"])
def test_no_service_is_unreachable(url: str) -> None:
    with pytest.raises(ServiceError) as caught:
        selftest(url, golden_embeddings("a"))
    assert caught.value.key == "gateway.unreachable"
    assert url in str(caught.value)


def test_dimensions_of_the_fake_are_what_the_tests_think() -> None:
    assert len(vector_of("a")) == DIMENSIONS
