"""The ASGI application: who asks, which endpoint answers, and every error in one envelope.

Routing is a dictionary: a framework's routing and its layers are passed through by every short embedding.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from sampan.gateway.admission import Admission
from sampan.gateway.batching import Batching
from sampan.gateway.call import Answer, Call, Endpoint
from sampan.gateway.callers import require
from sampan.gateway.embeddings import Embeddings
from sampan.gateway.engine import Engine
from sampan.gateway.envelope import ApiError
from sampan.gateway.generations import Generations
from sampan.gateway.house import House
from sampan.gateway.meter import Meter
from sampan.gateway.replies import ClientGoneError
from sampan.gateway.reranks import Reranks
from sampan.gateway.service import MODELS, Service
from sampan.gateway.settings import Limits, ServedModel

logger = logging.getLogger("sampan.gateway")
_NO_LIMITS_GIVEN = Limits()
_CLIENT_LEFT = 499  # nobody reads it: for logs and metrics


@dataclass(frozen=True)
class Route:
    """One path. ``scope`` is what a key must have; empty: any key will do; None: no key is asked for."""

    endpoint: Endpoint
    method: str = "POST"
    scope: str | None = ""
    works: bool = True  # it gives the engine work


Finished = Callable[[Call, int, float], None]


def create_app(
    engine: Engine, model: ServedModel, limits: Limits = _NO_LIMITS_GIVEN, *, slots: int = 8, pass_tokens: int = 512
) -> ASGIApp:
    """The API with batching over ``engine``, and with no keys; the caller starts and stops the engine."""
    meter = Meter()
    batching = Batching(engine, model, limits, meter, slots=slots, pass_tokens=pass_tokens)
    return make_api(House(batching, model, limits, Admission(limits), meter=meter))


def make_api(house: House, finished: Finished | None = None) -> ASGIApp:
    """The API of a house. ``finished`` hears of each request at its end: status, seconds."""
    embeddings = Embeddings(house)
    generations = Generations(house)
    reranks = Reranks(house)
    service = Service(house)
    routes = {
        "/v1/embeddings": Route(embeddings.post, scope="embeddings"),
        "/v1/similarity": Route(embeddings.similarity, scope="embeddings"),
        "/v1/rerank": Route(reranks.post, scope="embeddings"),
        "/rerank": Route(reranks.post, scope="embeddings"),
        "/tokenize": Route(reranks.tokenize),
        "/v1/chat/completions": Route(generations.chat, scope="chat"),
        "/v1/completions": Route(generations.completion, scope="chat"),
        "/v1/models": Route(service.models, "GET", works=False),
        MODELS: Route(service.one_model, "GET", works=False),
        "/health": Route(service.health, "GET", None, works=False),
        "/ready": Route(service.ready, "GET", None, works=False),
        "/metrics": Route(service.metrics, "GET", works=False),
        "/openapi.json": Route(service.openapi, "GET", None, works=False),
        "/docs": Route(service.docs, "GET", None, works=False),
    }
    return Api(house, routes, finished)


class Api:
    """Finds the endpoint, and answers for it where it raises. ``house`` and ``routes`` may be read."""

    def __init__(self, house: House, routes: Mapping[str, Route], finished: Finished | None) -> None:
        self.house = house
        self.routes = routes
        self._finished = finished

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        clock = time.monotonic  # the loop's clock, but uvloop's has whole milliseconds only
        call = Call(scope, receive, clock())
        status = _CLIENT_LEFT
        try:
            status = await self._answer(call, send)
        except ClientGoneError:
            call.code = "client_left"
        finally:
            self._count(call, status, clock() - call.began)

    async def _answer(self, call: Call, send: Send) -> int:
        """Answer; the status."""
        callers = self.house.callers
        try:
            route = self._route(call)
            if route.scope is None or not callers.are_asked:
                reply = await route.endpoint(call)
                return await self._send(call, reply, send)
            call.caller = callers.identify(call.headers)
            if route.scope:
                require(call.caller, route.scope)
            if not route.works:
                return await self._send(call, await route.endpoint(call), send)
            with callers.counted(call.caller):
                return await self._send(call, await route.endpoint(call), send)
        except ApiError as error:
            return await self._refuse(call, error, send)
        except (ClientGoneError, asyncio.CancelledError):
            raise
        except Exception:
            logger.exception("%s %s %s", call.id, call.scope["method"], call.scope["path"])
            return await self._refuse(call, ApiError("internal_error"), send)

    def _route(self, call: Call) -> Route:
        path, method = call.scope["path"], call.scope["method"]
        route = self.routes.get(path)
        if route is None:
            if not path.startswith(MODELS):
                raise ApiError("unknown_path", path=path)
            route = self.routes[MODELS]
        if method != route.method and not (method == "HEAD" and route.method == "GET"):
            raise ApiError("method_not_allowed", method=method, path=path, allowed=route.method)
        if route.works and self.house.meter.selftest_ok is False:
            raise ApiError("selftest_failed")
        return route

    async def _refuse(self, call: Call, error: ApiError, send: Send) -> int:
        call.code = error.code
        self.house.meter.errors[error.code] += 1
        if error.status >= 500 and error.code != "deadline_exceeded":
            logger.warning(
                "%s %s %s: %s %s", call.id, call.scope["method"], call.scope["path"], error.code, error.values
            )
        return await self._send(call, error.reply(), send)

    async def _send(self, call: Call, reply: Answer, send: Send) -> int:
        reply.headers.append((b"x-request-id", call.id.encode("ascii")))
        if self.house.retiring:
            reply.headers.append((b"connection", b"close"))

        await reply.send(send)
        return reply.status

    def _count(self, call: Call, status: int, seconds: float) -> None:
        house = self.house
        path = call.scope["path"]
        endpoint = path if path in self.routes else "other"
        house.meter.finished(endpoint, status, call.caller.id, seconds)
        if call.tokens:
            house.meter.tokens[endpoint, call.caller.id, "prompt"] += call.tokens
            house.callers.used(call.caller, call.tokens + call.completion_tokens)
        if call.completion_tokens:
            house.meter.tokens[endpoint, call.caller.id, "completion"] += call.completion_tokens
        if self._finished is not None:
            self._finished(call, status, seconds)
