"""What the service says of itself: life, readiness, models, metrics, its own description."""

from __future__ import annotations

from functools import cache
from importlib import resources

from sampan import __version__
from sampan.gateway.call import Call
from sampan.gateway.callers import require
from sampan.gateway.engine import EngineState
from sampan.gateway.envelope import ApiError
from sampan.gateway.exposition import CONTENT_TYPE, Exposition
from sampan.gateway.house import House
from sampan.gateway.replies import Reply, json_reply

MODELS = "/v1/models/"


class Service:
    """The endpoints that ask nothing of the engine but its state."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._exposition = Exposition(house)

    async def health(self, _call: Call) -> Reply:
        """200 where the engine answers, else 503 with its state."""
        house = self._house
        status = house.engine.status
        ready = status.state is EngineState.READY
        data = {
            "status": "ok" if ready else status.state.value,
            "model": house.model.id,
            "task": house.model.task,
            "engine": {
                "state": status.state.value,
                "variant": status.variant,
                "restarts": status.restarts,
                "device": house.actual_device,
            },
            "version": __version__,
            "release": house.model.release,
        }
        return json_reply(data, 200 if ready else 503)

    async def ready(self, _call: Call) -> Reply:
        """200 where requests should be sent: engine ready, on its device, golden answers right, not about to stop."""
        house = self._house
        state = house.engine.status.state
        reason = "draining" if house.draining else state.value if state is not EngineState.READY else ""
        reason = reason or ("" if house.on_its_device else "device")
        reason = reason or ("" if house.ready else "selftest")
        return json_reply({"ready": not reason, "reason": reason or "ok"}, 503 if reason else 200)

    async def models(self, _call: Call) -> Reply:
        """OpenAI's list, with the one model."""
        return json_reply({"object": "list", "data": [self._model_data()]})

    async def one_model(self, call: Call) -> Reply:
        """One model by its id. Raises ApiError ``model_not_found``."""
        name = call.scope["path"].removeprefix(MODELS)
        if name != self._house.model.id:
            raise ApiError("model_not_found", "model", model=name, served=self._house.model.id)
        return json_reply(self._model_data())

    async def metrics(self, call: Call) -> Reply:
        """Prometheus' text. Raises ApiError ``scope_missing``."""
        require(call.caller, "metrics")
        return Reply(self._exposition.text(), kind=CONTENT_TYPE)

    async def openapi(self, _call: Call) -> Reply:
        """The description of this API."""
        return Reply(_file("openapi.json"))

    async def docs(self, _call: Call) -> Reply:
        """The same for people; needs nothing from any network."""
        return Reply(_file("docs.html"), kind=b"text/html; charset=utf-8")

    def _model_data(self) -> dict[str, object]:
        model = self._house.model
        more = {
            "max_tokens": model.tokens,
            "dimensions": model.dimensions,
            "input_types": [n for n, _ in model.prompts],
        }
        known = {name: value for name, value in more.items() if value}
        return {"id": model.id, "object": "model", "created": model.created, "owned_by": "sampan"} | known


@cache
def _file(name: str) -> bytes:
    return (resources.files("sampan") / "data" / "gateway" / name).read_bytes()
