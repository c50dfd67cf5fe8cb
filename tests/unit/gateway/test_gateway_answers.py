"""Answers as the pinned llama-server gives them."""

from __future__ import annotations

import base64
import json
import struct

import pytest
from tests.fakes.gateway import settings

from sampan.gateway import llama_answers
from sampan.gateway.connection import Answer
from sampan.gateway.engine import (
    EngineBrokenError,
    EngineFault,
    EngineRefusedError,
    EngineUnavailableError,
    InputTooLongError,
)
from sampan.gateway.envelope import from_fault

SETTINGS = settings(embedding=True, tokens=512)


def refusal(status: int, message: str, kind: str, **more: object) -> Answer:
    return Answer(status, json.dumps({"error": {"code": status, "message": message, "type": kind, **more}}).encode())


TOO_LARGE = refusal(
    500,
    "input (600 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
    "server_error",
)
OVER_CONTEXT = refusal(
    400,
    "request (4203 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "exceed_context_size_error",
    n_prompt_tokens=4203,
    n_ctx=4096,
)
LARGER = refusal(
    400, "input (700 tokens) is larger than the max context size (512 tokens). skipping", "exceed_context_size_error"
)


@pytest.mark.parametrize(
    ("answer", "tokens", "limit"), [(TOO_LARGE, 600, 512), (OVER_CONTEXT, 4203, 4096), (LARGER, 700, 512)]
)
def test_too_long_is_400_with_count_and_limit(answer: Answer, tokens: int, limit: int) -> None:
    fault = llama_answers.fault(answer, SETTINGS)
    assert isinstance(fault, InputTooLongError)
    assert (fault.tokens, fault.limit) == (tokens, limit)
    error = from_fault(fault, "input")
    assert (error.status, error.code, error.param) == (400, "context_length_exceeded", "input")
    assert str(tokens) in error.body().decode()
    assert str(limit) in error.body().decode()


def test_too_long_without_numbers_still_has_the_limit() -> None:
    fault = llama_answers.fault(refusal(400, "too much", "exceed_context_size_error"), SETTINGS)
    assert isinstance(fault, InputTooLongError)
    assert (fault.tokens, fault.limit) == (None, 512)


@pytest.mark.parametrize(
    ("answer", "kind", "status"),
    [
        (refusal(400, "Prompt contains invalid tokens", "invalid_request_error"), EngineRefusedError, 400),
        (refusal(501, "not supported", "not_supported_error"), EngineRefusedError, 400),
        (refusal(503, "Loading model", "unavailable_error"), EngineUnavailableError, 503),
        (refusal(500, "decode failed", "server_error"), EngineBrokenError, 502),
        (Answer(500, b"\xff<html>"), EngineBrokenError, 502),
        (Answer(500, b'{"error": "text"}'), EngineBrokenError, 502),
        (Answer(500, b"[]"), EngineBrokenError, 502),
    ],
)
def test_each_refusal_has_its_status(answer: Answer, kind: type[EngineFault], status: int) -> None:
    fault = llama_answers.fault(answer, SETTINGS)
    assert type(fault) is kind
    assert from_fault(fault).status == status


def embeddings(*indices: int) -> bytes:
    data = [
        {"index": index, "embedding": base64.b64encode(struct.pack("<2f", index, 1)).decode()} for index in indices
    ]
    return json.dumps({"data": data, "usage": {"prompt_tokens": 9}}).encode()


def test_vectors_come_in_the_order_asked() -> None:
    found = llama_answers.embedded(embeddings(2, 0, 1), 3)
    assert [struct.unpack("<2f", packed)[0] for packed in found.vectors] == [0, 1, 2]
    assert found.tokens == 9


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (embeddings(0, 1), 3),
        (b"<html>", 1),
        (b"{}", 1),
        (b'{"data": [{}], "usage": {"prompt_tokens": 1}}', 1),
        (b'{"data": [{"index": 0, "embedding": [0.1]}], "usage": {"prompt_tokens": 1}}', 1),
        (b'{"data": 3, "usage": {"prompt_tokens": 1}}', 1),
    ],
)
def test_what_is_no_answer_is_an_engine_fault(body: bytes, count: int) -> None:
    with pytest.raises(EngineBrokenError):
        llama_answers.embedded(body, count)


def test_whether_a_template_takes_tools_is_what_the_engine_found() -> None:
    assert llama_answers.takes_tools(b'{"chat_template_caps": {"supports_tools": true}}')
    assert not llama_answers.takes_tools(b'{"chat_template_caps": {"supports_tools": false}}')
    for body in (b"{}", b"[]", b"<html>", b'{"chat_template_caps": {}}'):
        with pytest.raises(EngineBrokenError):
            llama_answers.takes_tools(body)
