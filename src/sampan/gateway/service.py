"""What the service says of itself: ``/health`` and ``/v1/models``."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope

from sampan import __version__
from sampan.gateway.engine import Engine, EngineState
from sampan.gateway.envelope import ApiError
from sampan.gateway.settings import ServedModel

_PREFIX = "/v1/models/"


class Service:
    """The endpoints that ask nothing of the engine but its state."""

    def __init__(self, engine: Engine, model: ServedModel) -> None:
        self._engine = engine
        self._model = model

    async def health(self, _scope: Scope, _receive: Receive) -> Response:
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

    async def models(self, _scope: Scope, _receive: Receive) -> Response:
        """OpenAI's list, with the one model."""
        return _json({"object": "list", "data": [self._model_data()]})

    async def one_model(self, scope: Scope, _receive: Receive) -> Response:
        """One model by its id. Raises ApiError ``model_not_found``."""
        name = scope["path"].removeprefix(_PREFIX)
        if name != self._model.id:
            raise ApiError("model_not_found", "model", model=name, served=self._model.id)
        return _json(self._model_data())

    def _model_data(self) -> dict[str, object]:
        return {"id": self._model.id, "object": "model", "created": self._model.created, "owned_by": "sampan"}


def _json(data: Mapping[str, object], status: int = 200) -> Response:
    return Response(orjson.dumps(data), status, media_type="application/json")
