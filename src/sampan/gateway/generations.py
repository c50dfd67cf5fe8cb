"""``POST /v1/chat/completions`` and ``POST /v1/completions``: checked, then passed through as the engine sends it."""

from __future__ import annotations

import logging

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sampan.gateway.bodies import read_body
from sampan.gateway.disconnect import ClientGoneError, unless_client_leaves
from sampan.gateway.engine import Engine, EngineFault, Generation
from sampan.gateway.envelope import from_fault
from sampan.gateway.requests import check_generation
from sampan.gateway.settings import Limits, ServedModel

logger = logging.getLogger("sampan.gateway")


class Generations:
    """Both endpoints over one engine."""

    def __init__(self, engine: Engine, model: ServedModel, limits: Limits) -> None:
        self._engine = engine
        self._model = model
        self._limits = limits

    async def chat(self, scope: Scope, receive: Receive) -> Response:
        """Raises ApiError, ClientGoneError."""
        return await self._forward(scope, receive, "/v1/chat/completions", "messages")

    async def completion(self, scope: Scope, receive: Receive) -> Response:
        """Raises ApiError, ClientGoneError."""
        return await self._forward(scope, receive, "/v1/completions", "prompt")

    async def _forward(self, scope: Scope, receive: Receive, path: str, field: str) -> Response:
        body = await read_body(scope, receive, self._limits.body_bytes)
        stream = check_generation(body, self._model, field).get("stream") is True
        try:
            running = await unless_client_leaves(receive, self._engine.generate(path, body))
            if stream:
                return Relay(running)
            return await unless_client_leaves(receive, _whole(running))
        except EngineFault as fault:
            raise from_fault(fault, field) from fault


async def _whole(running: Generation) -> Response:
    try:
        pieces = [chunk async for chunk in running.chunks()]
    finally:
        await running.close()
    return Response(b"".join(pieces), media_type=running.content_type)


class Relay(Response):
    """Sends each piece when it comes. A client that leaves ends the generation in the engine."""

    def __init__(self, running: Generation) -> None:
        self._running = running
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # the latter: nginx must not buffer
        super().__init__(None, 200, headers, running.content_type)
        del self.headers["content-length"]

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            await unless_client_leaves(receive, self._send_all(send))
        except ClientGoneError:
            logger.debug("client left a stream")
        finally:
            await self._running.close()

    async def _send_all(self, send: Send) -> None:
        try:
            async for chunk in self._running.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except EngineFault as fault:
            # The status is sent already, so the error travels as an event; OpenAI's clients raise it.
            event = b"data: " + from_fault(fault).body() + b"\n\n"
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
