"""Reads a request's body, up to a limit."""

from __future__ import annotations

from starlette.types import Receive, Scope

from sampan.gateway.disconnect import ClientGoneError
from sampan.gateway.envelope import ApiError


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises ApiError ``body_too_large`` (by its declared length before reading), ClientGoneError."""
    if _declared_length(scope) > limit:
        raise ApiError("body_too_large", limit=limit)
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise ApiError("body_too_large", limit=limit)
        pieces.append(piece)
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _declared_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
