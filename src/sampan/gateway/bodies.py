"""Reads a request's body: up to a limit of bytes, and of time for clients that dribble."""

from __future__ import annotations

import asyncio

from starlette.types import Message

from sampan.gateway.admission import Admission
from sampan.gateway.call import Call
from sampan.gateway.envelope import ApiError
from sampan.gateway.replies import ClientGoneError

_SECONDS = 30.0  # for all of it, and one more for each of these bytes of the limit:
_BYTES_PER_SECOND = 64 * 1024
_SMALL = 64 * 1024  # not worth counting


async def read_body(call: Call, admission: Admission) -> bytes:
    """The whole body. Raises ApiError ``body_too_large`` (by its declared length before reading), ``body_too_slow``,
    ``queue_full`` (too many large bodies at a time), ClientGoneError.
    """
    limit = admission.limits.body_bytes
    declared = call.declared_length
    if declared > limit:
        raise ApiError("body_too_large", limit=limit)
    first = await call.receive() if declared <= _SMALL and declared else None
    if first is not None and not first.get("more_body"):
        return _piece(first)  # nearly always
    pieces: list[bytes] = [] if first is None else [_piece(first)]
    admission.hold_body(declared)
    try:
        await asyncio.wait_for(_rest(call, pieces, admission), _SECONDS + limit / _BYTES_PER_SECOND)
    except (asyncio.TimeoutError, TimeoutError) as error:
        raise ApiError("body_too_slow") from error
    finally:
        admission.drop_body(declared or sum(map(len, pieces)))
    return b"".join(pieces)


async def _rest(call: Call, pieces: list[bytes], admission: Admission) -> None:
    """A body of declared length is held already; one of unknown length piece by piece."""
    size = sum(map(len, pieces))
    declared = call.declared_length
    more = True
    while more:
        message = await call.receive()
        piece = _piece(message)
        size += len(piece)
        if size > admission.limits.body_bytes:
            raise ApiError("body_too_large", limit=admission.limits.body_bytes)
        admission.hold_body(0 if declared else len(piece))
        pieces.append(piece)
        more = message.get("more_body", False)


def _piece(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    piece: bytes = message.get("body", b"")
    return piece
