"""Errors as OpenAI's clients expect them: ``{"error": {"message", "type", "param", "code"}}``.

Codes are stable and listed in docs/gateway.md; their texts are ``api.<code>`` of the catalogue.
"""

from __future__ import annotations

import orjson

from sampan import i18n
from sampan.gateway.engine import (
    BadVectorError,
    DeadlineError,
    EngineBrokenError,
    EngineFault,
    EngineRefusedError,
    EngineTimeoutError,
    EngineUnavailableError,
    InputTooLongError,
)
from sampan.gateway.replies import Reply

_STATUS = {
    "invalid_json": 400,
    "invalid_value": 400,
    "missing_value": 400,
    "empty_input": 400,
    "too_many_inputs": 400,
    "dimensions_unsupported": 400,
    "text_too_large": 400,
    "context_length_exceeded": 400,
    "request_refused": 400,
    "wrong_task": 400,
    "tools_unsupported": 400,
    "missing_key": 401,
    "invalid_key": 401,
    "scope_missing": 403,
    "model_not_found": 404,
    "unknown_path": 404,
    "method_not_allowed": 405,
    "body_too_slow": 408,
    "body_too_large": 413,
    "queue_full": 429,
    "rate_limit_exceeded": 429,
    "internal_error": 500,
    "engine_error": 502,
    "vector_not_finite": 502,
    "engine_unavailable": 503,
    "selftest_failed": 503,
    "engine_timeout": 504,
    "deadline_exceeded": 504,
}
CODES = dict(_STATUS)
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},
    413: {"Connection": "close"},  # the rest of the body is not worth reading
    503: {"Retry-After": "1"},  # the supervisor's first back-off is shorter
}


class ApiError(Exception):
    """A request that gets an error answer. ``param`` names the field of the body that is wrong."""

    def __init__(self, code: str, /, param: str | None = None, **values: object) -> None:
        super().__init__(code, values)
        self.code = code
        self.param = param
        self.values = values

    @property
    def status(self) -> int:
        """The HTTP status that belongs to the code."""
        return _STATUS[self.code]

    def body(self) -> bytes:
        """The envelope as JSON."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        message = i18n.text(f"api.{self.code}", **self.values)
        return orjson.dumps({"error": {"message": message, "type": kind, "param": self.param, "code": self.code}})

    def reply(self) -> Reply:
        """The whole answer."""
        headers = dict(_HEADERS.get(self.status, {}))
        if "retry_after" in self.values:
            headers["Retry-After"] = str(self.values["retry_after"])
        if "allowed" in self.values:
            headers["Allow"] = str(self.values["allowed"])
        return Reply(self.body(), self.status, more=headers)


def from_fault(fault: EngineFault, param: str | None = None) -> ApiError:
    """What the client is told of a fault of the engine. ``param`` is the field that holds the text."""
    if isinstance(fault, InputTooLongError):
        unknown = "?"
        tokens = unknown if fault.tokens is None else fault.tokens
        limit = unknown if fault.limit is None else fault.limit
        return ApiError("context_length_exceeded", param, tokens=tokens, limit=limit)
    if isinstance(fault, EngineTimeoutError):
        return ApiError("engine_timeout", seconds=f"{fault.seconds:g}")
    if isinstance(fault, EngineUnavailableError):
        return ApiError("engine_unavailable", state=fault.state.value)
    if isinstance(fault, BadVectorError):
        return ApiError("vector_not_finite", index=fault.index, detail=str(fault))
    for kind, code in _PLAIN:
        if isinstance(fault, kind):
            return ApiError(code, detail=str(fault))
    raise fault


_PLAIN: tuple[tuple[type[EngineFault], str], ...] = (
    (EngineRefusedError, "request_refused"),
    (EngineBrokenError, "engine_error"),
    (DeadlineError, "deadline_exceeded"),
)
