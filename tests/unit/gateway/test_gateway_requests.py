from __future__ import annotations

import json

import pytest

from sampan.gateway.envelope import ApiError
from sampan.gateway.requests import check_generation, parse_embeddings
from sampan.gateway.settings import Limits, ServedModel

EMBEDDING = ServedModel("minilm", "embedding", 384)
CHAT = ServedModel("smol", "chat")
LIMITS = Limits(inputs=3)


def parse(**body: object) -> tuple[object, ...]:
    return parse_embeddings(json.dumps(body).encode(), EMBEDDING, LIMITS).inputs


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("one text", ("one text",)),
        (["a", "b"], ("a", "b")),
        ([1, 2, 3], ((1, 2, 3),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
        ([" "], (" ",)),
        ("\u0000", ("\u0000",)),
    ],
)
def test_every_shape_of_input_becomes_a_list_of_texts(given: object, expected: tuple[object, ...]) -> None:
    assert parse(input=given) == expected


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_value", "input"),
        ({"input": None}, "missing_value", "input"),
        ({"input": ""}, "empty_input", "input"),
        ({"input": []}, "empty_input", "input"),
        ({"input": ["a", ""]}, "empty_input", "input"),
        ({"input": ["a", []]}, "empty_input", "input"),
        ({"input": 7}, "invalid_value", "input"),
        ({"input": {"text": "a"}}, "invalid_value", "input"),
        ({"input": ["a", 7]}, "invalid_value", "input"),
        ({"input": [[1, "a"]]}, "invalid_value", "input"),
        ({"input": [True, False]}, "invalid_value", "input"),
        ({"input": [-1]}, "invalid_value", "input"),
        ({"input": [2**31]}, "invalid_value", "input"),
        ({"input": [1.5]}, "invalid_value", "input"),
        ({"input": ["a"] * 4}, "too_many_inputs", "input"),
        ({"input": "a", "encoding_format": "hex"}, "invalid_value", "encoding_format"),
        ({"input": "a", "encoding_format": ["float"]}, "invalid_value", "encoding_format"),
        ({"input": "a", "dimensions": 128}, "dimensions_unsupported", "dimensions"),
        ({"input": "a", "dimensions": True}, "dimensions_unsupported", "dimensions"),
        ({"input": "a", "dimensions": "384"}, "dimensions_unsupported", "dimensions"),
        ({"input": "a", "model": "bge"}, "model_not_found", "model"),
        ({"input": "a", "model": ["minilm"]}, "model_not_found", "model"),
    ],
)
def test_a_wrong_request_names_its_field(body: dict[str, object], code: str, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(**body)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_the_wrong_text_of_a_list_is_named() -> None:
    with pytest.raises(ApiError) as caught:
        parse(input=["a", "b", ""])
    assert caught.value.values["field"] == "input[2]"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[1]", b'"text"', b"\xff\xfe", b"null", b"[" * 5000, b'{"input": "\\ud800"}']
)
def test_what_is_no_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        parse_embeddings(raw, EMBEDDING, LIMITS)
    assert (caught.value.code, caught.value.status) == ("invalid_json", 400)


def test_the_models_own_length_is_no_cut() -> None:
    assert parse(input="a", dimensions=384, user="u", model="minilm") == ("a",)


@pytest.mark.parametrize(("encoding", "base64"), [(None, False), ("float", False), ("base64", True)])
def test_encoding_is_float_unless_asked(encoding: str | None, base64: bool) -> None:
    body = json.dumps({"input": "a", "encoding_format": encoding}).encode()
    assert parse_embeddings(body, EMBEDDING, LIMITS).base64 is base64


def test_an_embedding_service_says_what_it_is_to_a_chat() -> None:
    with pytest.raises(ApiError) as caught:
        check_generation(b'{"messages": [{"role": "user", "content": "hi"}]}', EMBEDDING, "messages")
    assert caught.value.code == "wrong_task"
    assert "minilm" in caught.value.body().decode()
    assert "embedding" in caught.value.body().decode()


def test_a_chat_service_says_what_it_is_to_an_embedding() -> None:
    with pytest.raises(ApiError) as caught:
        parse_embeddings(b'{"input": "a"}', CHAT, LIMITS)
    assert (caught.value.code, caught.value.status) == ("wrong_task", 400)


@pytest.mark.parametrize(
    ("field", "body", "code"),
    [
        ("messages", {}, "missing_value"),
        ("messages", {"messages": []}, "empty_input"),
        ("messages", {"messages": "hi"}, "invalid_value"),
        ("prompt", {}, "missing_value"),
        ("prompt", {"prompt": ""}, "empty_input"),
        ("prompt", {"prompt": 3}, "invalid_value"),
        ("prompt", {"prompt": "a", "model": "x"}, "model_not_found"),
    ],
)
def test_a_completion_needs_its_text(field: str, body: dict[str, object], code: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_generation(json.dumps(body).encode(), CHAT, field)
    assert caught.value.code == code
