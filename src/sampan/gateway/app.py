"""The ASGI application: routes, error answers, middleware. Knows the engine by its protocol only."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sampan import __version__
from sampan.gateway.disconnect import ClientGoneError
from sampan.gateway.embeddings import Embeddings
from sampan.gateway.engine import Engine, EngineState
from sampan.gateway.envelope import ApiError
from sampan.gateway.generations import Generations
from sampan.gateway.middleware import BodyLimit
from sampan.gateway.settings import Limits, ServedModel

logger = logging.getLogger("sampan.gateway")
_NOT_FOUND, _NOT_ALLOWED = 404, 405


def create_app(engine: Engine, model: ServedModel, limits: Limits = Limits()) -> Starlette:  # noqa: B008  (frozen)
    """The API over ``engine``; the caller starts and stops it.

    What is to wrap requests (keys, admission, metrics) is a further class in ``middleware``; what is to change how
    work reaches the model (batching, cache) is an Engine around an Engine.
    """
    embeddings = Embeddings(engine, model, limits)
    generations = Generations(engine, model)
    service = Service(engine, model)
    return Starlette(
        routes=[
            Route("/v1/embeddings", embeddings.post, methods=["POST"]),
            Route("/v1/chat/completions", generations.chat, methods=["POST"]),
            Route("/v1/completions", generations.completion, methods=["POST"]),
            Route("/v1/models", service.models, methods=["GET"]),
            Route("/v1/models/{id:path}", service.one_model, methods=["GET"]),
            Route("/health", service.health, methods=["GET"]),
        ],
        middleware=[Middleware(BodyLimit, limits.body_bytes)],
        exception_handlers={
            ApiError: _api_error,
            HTTPException: _http_error,
            ClientGoneError: _client_gone,
            Exception: _internal_error,
        },
    )


class Service:
    """What the service says of itself."""

    def __init__(self, engine: Engine, model: ServedModel) -> None:
        self._engine = engine
        self._model = model

    async def health(self, _request: Request) -> Response:
        """200 where requests are answered now, else 503 with the state."""
        status = self._engine.status
        ready = status.state is EngineState.READY
        data = {
            "status": "ok" if ready else status.state.value,
            "model": self._model.id,
            "task": self._model.task,
            "engine": {"state": status.state.value, "variant": status.variant, "restarts": status.restarts},
            "version": __version__,
        }
        return _json(data, 200 if ready else 503)

    async def models(self, _request: Request) -> Response:
        """OpenAI's list, with the one model."""
        return _json({"object": "list", "data": [self._model_data()]})

    async def one_model(self, request: Request) -> Response:
        """One model by its id. Raises ApiError ``model_not_found``."""
        name = request.path_params["id"]
        if name != self._model.id:
            raise ApiError("model_not_found", "model", model=name, served=self._model.id)
        return _json(self._model_data())

    def _model_data(self) -> dict[str, object]:
        return {"id": self._model.id, "object": "model", "created": self._model.created, "owned_by": "sampan"}


def _json(data: Mapping[str, object], status: int = 200) -> Response:
    return Response(orjson.dumps(data), status, media_type="application/json")


async def _api_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    if error.status >= 500:
        logger.warning("%s %s: %s %s", request.method, request.url.path, error.code, error.values)
    return error.response()


async def _http_error(request: Request, error: Exception) -> Response:
    """The router's own refusals."""
    if isinstance(error, HTTPException) and error.status_code in (_NOT_FOUND, _NOT_ALLOWED):
        code = "unknown_path" if error.status_code == _NOT_FOUND else "method_not_allowed"
        response = ApiError(code, method=request.method, path=request.url.path).response()
        response.headers.update(error.headers or {})
        return response
    raise error


async def _client_gone(request: Request, _error: Exception) -> Response:
    logger.debug("%s %s: client left", request.method, request.url.path)
    return Response(status_code=499)  # nobody reads it; uvicorn drops it


async def _internal_error(_request: Request, _error: Exception) -> Response:
    # Starlette raises the error again after this answer, so it is logged with its trace.
    return ApiError("internal_error").response()
