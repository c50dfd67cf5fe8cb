"""Whole answers over plain ASGI: a general response class does more than a short answer needs."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.types import Message, Send

Header = tuple[bytes, bytes]
JSON = b"application/json"


class ClientGoneError(Exception):
    """The client closed its connection; nobody reads an answer."""


async def careful(send: Send, message: Message) -> None:
    """One message of a stream. Raises ClientGoneError."""
    try:
        await send(message)
    except RuntimeError as error:  # uvloop's word for a connection that was closed meanwhile
        raise ClientGoneError from error


class Reply:
    """A status, headers and a whole body."""

    __slots__ = ("body", "headers", "status")

    def __init__(
        self, body: bytes, status: int = 200, kind: bytes = JSON, more: Mapping[str, str] | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.headers: list[Header] = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        for name, value in (more or {}).items():
            self.headers.append((name.lower().encode("ascii"), value.encode("latin-1", "replace")))

    async def send(self, send: Send) -> None:
        """Send it all. Raises ClientGoneError."""
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
            await send({"type": "http.response.body", "body": self.body})
        except RuntimeError as error:  # uvloop's word for a connection that was closed meanwhile
            raise ClientGoneError from error


def json_reply(data: Mapping[str, object], status: int = 200) -> Reply:
    """The data as JSON."""
    return Reply(orjson.dumps(data), status)
