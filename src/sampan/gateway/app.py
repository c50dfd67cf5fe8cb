"""The ASGI application: which endpoint answers what, and every error in one envelope.

Routing is a dictionary: with a framework's routing and its layers a short embedding spent a quarter of the gateway's
time there (``bench/gateway_overhead.py``). Responses are Starlette's.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sampan.gateway.disconnect import ClientGoneError
from sampan.gateway.embeddings import Embeddings
from sampan.gateway.engine import Engine
from sampan.gateway.envelope import ApiError
from sampan.gateway.generations import Generations
from sampan.gateway.service import Service
from sampan.gateway.settings import Limits, ServedModel

logger = logging.getLogger("sampan.gateway")

Endpoint = Callable[[Scope, Receive], Awaitable[Response]]
_NO_LIMITS_GIVEN = Limits()
_MODELS = "/v1/models/"


def create_app(engine: Engine, model: ServedModel, limits: Limits = _NO_LIMITS_GIVEN) -> ASGIApp:
    """The API over ``engine``; the caller starts and stops it.

    What is to wrap all requests (keys, admission, metrics) is a plain ASGI class around the ``Api`` here; what is to
    change how work reaches the model (batching, cache) is an Engine around ``engine``.
    """
    embeddings = Embeddings(engine, model, limits)
    generations = Generations(engine, model, limits)
    service = Service(engine, model)
    return Api(
        {
            "/v1/embeddings": {"POST": embeddings.post},
            "/v1/chat/completions": {"POST": generations.chat},
            "/v1/completions": {"POST": generations.completion},
            "/v1/models": {"GET": service.models},
            "/health": {"GET": service.health},
        },
        {"GET": service.one_model},
    )


class Api:
    """Finds the endpoint, and answers for it where it raises."""

    def __init__(self, routes: Mapping[str, Mapping[str, Endpoint]], one_model: Mapping[str, Endpoint]) -> None:
        self._routes = routes
        self._one_model = one_model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        try:
            response = await self._endpoint(scope)(scope, receive)
        except ApiError as error:
            if error.status >= 500:
                logger.warning("%s %s: %s %s", scope["method"], scope["path"], error.code, error.values)
            response = error.response()
        except ClientGoneError:
            logger.debug("%s %s: client left", scope["method"], scope["path"])
            return
        except Exception:
            logger.exception("%s %s", scope["method"], scope["path"])
            response = ApiError("internal_error").response()
        await response(scope, receive, send)

    def _endpoint(self, scope: Scope) -> Endpoint:
        path, method = scope["path"], scope["method"]
        methods = self._routes.get(path)
        if methods is None:
            if not path.startswith(_MODELS):
                raise ApiError("unknown_path", path=path)
            methods = self._one_model
        endpoint = methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            raise ApiError("method_not_allowed", method=method, path=path, allowed=", ".join(methods))
        return endpoint
