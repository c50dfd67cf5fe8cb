"""A reranker, tools and JSON schemas: the whole gateway as a process, with the real llama-server behind it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from tests.fakes import real_engine
from tests.fakes.served import served
from tests.fakes.started_engine import needed

pytestmark = pytest.mark.integration
CLASSES = Path(__file__).parents[1] / "data/weights/classes"
PAIRS: list[dict[str, Any]] = json.loads((CLASSES / "truth.json").read_text("utf-8"))["xlm-roberta-reranker"]["pairs"]
QUERY = PAIRS[0]["query"]
DOCUMENTS = [pair["document"] for pair in PAIRS]
SLOTS = 2  # fewer than documents: they go in parts


@pytest.fixture(scope="module")
def reranker() -> Iterator[httpx.Client]:
    engine = needed(real_engine.executable(), "llama-server")
    weights = CLASSES / "xlm-roberta-reranker.gguf"
    with (
        served(task="rerank", engine=engine, weights=weights, tokens=128, slots=SLOTS) as service,
        httpx.Client(base_url=service.url, timeout=60, trust_env=False) as client,
    ):
        service.until("/ready", 200, 60)
        yield client


def results(client: httpx.Client, **more: object) -> list[dict[str, Any]]:
    answer = client.post("/v1/rerank", json={"query": QUERY, "documents": DOCUMENTS, **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_raw_scores_are_the_originals_in_every_order(reranker: httpx.Client) -> None:
    found = results(reranker, raw_scores=True)
    assert len(found) == len(DOCUMENTS) > SLOTS
    for each in found:
        assert each["relevance_score"] == pytest.approx(PAIRS[each["index"]]["score"], abs=2e-3)
    assert [each["relevance_score"] for each in found] == sorted(
        (each["relevance_score"] for each in found), reverse=True
    )
    turned = reranker.post("/v1/rerank", json={"query": QUERY, "documents": DOCUMENTS[::-1], "raw_scores": True})
    for each in turned.json()["results"]:
        assert each["relevance_score"] == pytest.approx(PAIRS[::-1][each["index"]]["score"], abs=2e-3)


def test_scores_are_the_logistic_function_and_the_best_come_first(reranker: httpx.Client) -> None:
    found = results(reranker, top_n=1, return_documents=True)
    best = max(range(len(PAIRS)), key=lambda index: float(PAIRS[index]["score"]))
    assert [each["index"] for each in found] == [best]
    assert found[0]["document"] == {"text": DOCUMENTS[best]}
    assert found[0]["relevance_score"] == pytest.approx(1 / (1 + math.exp(-PAIRS[best]["score"])), abs=1e-3)


def test_the_other_servers_shape_gets_a_bare_list(reranker: httpx.Client) -> None:
    answer = reranker.post("/rerank", json={"query": QUERY, "texts": DOCUMENTS, "raw_scores": True})
    assert {each["index"] for each in answer.json()} == set(range(len(DOCUMENTS)))


def test_a_pair_that_is_too_long_is_a_bad_request_and_the_next_is_answered(reranker: httpx.Client) -> None:
    answer = reranker.post("/v1/rerank", json={"query": QUERY, "documents": [DOCUMENTS[0], "word " * 500]})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert len(results(reranker)) == len(DOCUMENTS)


def test_a_reranker_embeds_nothing(reranker: httpx.Client) -> None:
    answer = reranker.post("/v1/embeddings", json={"input": "a"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "wrong_task")


TOOLS_TEMPLATE = """{% if tools %}<|im_start|>system
Tools: {% for tool in tools %}{{ tool | tojson }} {% endfor %}
Call one as <tool_call>
{"name": NAME, "arguments": ARGUMENTS}
</tool_call><|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif %}{% for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@contextmanager
def chatting(weights: Path) -> Iterator[openai.OpenAI]:
    engine = needed(real_engine.executable(), "llama-server")
    with (
        served(task="chat", engine=engine, weights=weights, tokens=1024, slots=1) as service,
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0, timeout=300) as client,
    ):
        service.until("/ready", 200, 120)
        yield client


@pytest.fixture(scope="module")
def chat() -> Iterator[openai.OpenAI]:
    """SmolLM2 as it is: its template has no tools."""
    with chatting(needed(real_engine.weights("chat"), "GGUF of a model for chat")) as client:
        yield client


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """The same with a template that has tools."""
    weights = needed(real_engine.weights("chat"), "GGUF of a model for chat")
    folder = tmp_path_factory.mktemp("tools")
    (folder / "template").write_text(TOOLS_TEMPLATE)
    words: list[str | Path] = [sys.executable, "-m", "gguf.scripts.gguf_new_metadata", weights, folder / "m.gguf"]
    subprocess.run([*words, "--chat-template-file", folder / "template"], check=True, capture_output=True)
    with chatting(folder / "m.gguf") as client:
        yield client
    (folder / "m.gguf").unlink()


WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the weather in Beijing?"}]


def call_of(number: int, city: str) -> dict[str, object]:
    function = {"name": "get_weather", "arguments": json.dumps({"city": city})}
    return {"id": f"call_{number}", "type": "function", "function": function}


def conversation() -> list[Any]:
    """So small a model calls a tool where it has seen it done."""
    told: list[Any] = []
    for number, city in enumerate(("Paris", "London", "Rome")):
        told += [
            {"role": "user", "content": f"What is the weather in {city}?"},
            {"role": "assistant", "content": None, "tool_calls": [call_of(number, city)]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": "sunny"},
            {"role": "assistant", "content": "It is sunny."},
        ]
    return [*told, *ASKED]


CHOICES: tuple[Literal["auto", "required"], ...] = ("auto", "required")


@pytest.mark.parametrize("choice", CHOICES)
def test_a_tool_is_called_with_arguments_of_its_schema(
    caller: openai.OpenAI, choice: Literal["auto", "required"]
) -> None:
    answer = caller.chat.completions.create(
        model="served", messages=conversation(), tools=[WEATHER], tool_choice=choice, temperature=0, max_tokens=60
    )
    calls = answer.choices[0].message.tool_calls
    assert calls
    assert calls[0].type == "function"
    assert calls[0].function.name == "get_weather"
    assert json.loads(calls[0].function.arguments).keys() == {"city"}
    assert answer.choices[0].finish_reason == "tool_calls"


def test_a_streamed_tool_call_is_whole_when_put_together(caller: openai.OpenAI) -> None:
    stream = caller.chat.completions.create(
        model="served", messages=conversation(), tools=[WEATHER], temperature=0, max_tokens=60, stream=True
    )
    name, arguments = "", ""
    for chunk in stream:
        for call in (chunk.choices[0].delta.tool_calls if chunk.choices else None) or ():
            name += (call.function and call.function.name) or ""
            arguments += (call.function and call.function.arguments) or ""
    assert name == "get_weather"
    assert json.loads(arguments).keys() == {"city"}


def test_tools_that_the_template_has_no_place_for_are_refused(chat: openai.OpenAI) -> None:
    """llama-server ignores them, even with tool_choice required."""
    with pytest.raises(openai.BadRequestError) as caught:
        chat.chat.completions.create(
            model="served", messages=ASKED, tools=[WEATHER], tool_choice="required", max_tokens=8
        )
    assert (caught.value.code, caught.value.param) == ("tools_unsupported", "tools")
    answer = chat.chat.completions.create(
        model="served", messages=ASKED, tools=[WEATHER], tool_choice="none", max_tokens=8
    )
    assert answer.choices[0].message.content


def test_an_answer_keeps_to_its_json_schema(chat: openai.OpenAI) -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"city": {"enum": ["Beijing", "Paris"]}, "sunny": {"type": "boolean"}},
        "required": ["city", "sunny"],
        "additionalProperties": False,
    }
    answer = chat.chat.completions.create(
        model="served",
        messages=ASKED,
        temperature=0,
        max_tokens=80,
        response_format={"type": "json_schema", "json_schema": {"name": "weather", "schema": schema, "strict": True}},
    )
    found = json.loads(answer.choices[0].message.content or "")
    assert found["city"] in ("Beijing", "Paris")
    assert isinstance(found["sunny"], bool)
    assert len(found) == 2


NO_SCHEMA = {"name": "x", "schema": {"type": "nonsense"}}


def test_a_schema_that_is_none_is_a_bad_request(chat: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat.chat.completions.create(
            model="served",
            messages=ASKED,
            max_tokens=8,
            extra_body={
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "nonsense"}},
                }
            },
        )
    assert caught.value.code == "request_refused"


def test_a_stop_word_ends_the_answer(chat: openai.OpenAI) -> None:
    whole = chat.completions.create(model="served", prompt="One, two, three, four,", max_tokens=12, temperature=0)
    word = whole.choices[0].text.split()[2]
    cut = chat.completions.create(
        model="served", prompt="One, two, three, four,", max_tokens=12, temperature=0, stop=[word]
    )
    assert cut.choices[0].text == whole.choices[0].text.split(word)[0]
