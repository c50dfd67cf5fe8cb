"""llama-server's answers, read. Pure: bytes in, a value or a fault out.

Messages and statuses are those of the pinned source (tools/server/server-context.cpp, server-common.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

from sampan.gateway import vectors
from sampan.gateway.connection import Answer
from sampan.gateway.engine import (
    Embedded,
    EngineBrokenError,
    EngineFault,
    EngineRefusedError,
    EngineState,
    EngineUnavailableError,
    InputTooLongError,
    Ranked,
)
from sampan.spec.plan import EngineSettings

# With HTTP 500: "input (600 tokens) is too large to process. increase the physical batch size (current batch
# size: 512)"; with 400: "request (600 tokens) exceeds the available context size (512 tokens), try increasing it".
_TOO_LONG = re.compile(r"(?:input|request) \((\d+) tokens\) (?:is too large|is larger|exceeds)\D*(\d+)", re.DOTALL)
_UNAVAILABLE = 503
_REFUSED = frozenset({400, 404, 501})  # 501: "not supported", about the request


def embedded(body: bytes, count: int) -> Embedded:
    """An answer of ``/v1/embeddings`` with base64 vectors. Raises EngineBrokenError."""
    try:
        data = orjson.loads(body)
        items = data["data"]
        if len(items) > 1:
            items = sorted(items, key=lambda item: int(item["index"]))
        found = tuple([vectors.from_base64(item["embedding"]) for item in items])
        tokens = int(data["usage"]["prompt_tokens"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise EngineBrokenError(f"no embeddings in the answer: {error!r}") from error
    if len(found) != count:
        raise EngineBrokenError(f"{len(found)} vectors for {count} texts")
    return Embedded(found, tokens)


def tokens(body: bytes) -> tuple[int, ...]:
    """An answer of ``/tokenize``. Raises EngineBrokenError."""
    try:
        return tuple(int(token) for token in orjson.loads(body)["tokens"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise EngineBrokenError(f"no tokens in the answer: {error!r}") from error


def counts(found: Sequence[int], separator: int) -> list[int]:
    """The lengths of the parts between the separators."""
    lengths = [0]
    for token in found:
        if token == separator:
            lengths.append(0)
        else:
            lengths[-1] += 1
    return lengths


def ranked(body: bytes, count: int) -> Ranked:
    """An answer of ``/v1/rerank``: raw scores in the order asked. Raises EngineBrokenError."""
    try:
        data = orjson.loads(body)
        scores = {int(item["index"]): float(item["relevance_score"]) for item in data["results"]}
        used = int(data["usage"]["prompt_tokens"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise EngineBrokenError(f"no ranking in the answer: {error!r}") from error
    if sorted(scores) != list(range(count)):
        raise EngineBrokenError(f"{len(scores)} scores for {count} documents")
    return Ranked(tuple(scores[index] for index in range(count)), used)


def takes_tools(body: bytes) -> bool:
    """An answer of ``/props``: what llama-server found by trying the template. Raises EngineBrokenError."""
    try:
        return bool(orjson.loads(body)["chat_template_caps"]["supports_tools"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise EngineBrokenError(f"no properties in the answer: {error!r}") from error


def fault(answer: Answer, settings: EngineSettings) -> EngineFault:
    """What an answer that is not 200 means."""
    error = _error(answer.body)
    message = str(error.get("message", "")) or answer.body[:200].decode("utf-8", "replace")
    too_long = _too_long(error, message, settings)
    if too_long is not None:
        return too_long
    if answer.status == _UNAVAILABLE:
        return EngineUnavailableError(EngineState.LOADING)
    if answer.status in _REFUSED:
        return EngineRefusedError(message)
    return EngineBrokenError(f"HTTP {answer.status}: {message}")


def _too_long(error: dict[str, object], message: str, settings: EngineSettings) -> InputTooLongError | None:
    found = _TOO_LONG.search(message)
    if found is not None:
        return InputTooLongError(int(found[1]), int(found[2]))
    if error.get("type") != "exceed_context_size_error":
        return None
    tokens, limit = error.get("n_prompt_tokens"), error.get("n_ctx")
    return InputTooLongError(
        tokens if isinstance(tokens, int) and tokens > 0 else None,
        limit if isinstance(limit, int) and limit > 0 else settings.context,
    )


def _error(body: bytes) -> dict[str, object]:
    try:
        error = orjson.loads(body)["error"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}
