"""Plain ASGI classes around the endpoints. Keys, admission and metrics will be further ones."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sampan.gateway.envelope import ApiError


class BodyLimit:
    """Refuses a body over ``limit`` bytes: by its declared length before reading, else while it comes."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _declared_length(scope) > self._limit:
            await self._error().response()(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise self._error()
            return message

        return counted

    def _error(self) -> ApiError:
        return ApiError("body_too_large", limit=self._limit)


def _declared_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
