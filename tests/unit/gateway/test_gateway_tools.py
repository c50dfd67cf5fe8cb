"""Tools that the model cannot see are refused; llama-server would drop them without a word."""

from __future__ import annotations

import httpx
import pytest
from tests.unit.gateway.engines import ScriptedEngine

from sampan.gateway.admission import Admission
from sampan.gateway.app import make_api
from sampan.gateway.engine import EngineBrokenError
from sampan.gateway.house import House
from sampan.gateway.readiness import learn
from sampan.gateway.settings import Limits, ServedModel

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def house(task: str = "chat") -> House:
    limits = Limits()
    return House(ScriptedEngine(), ServedModel("m", task), limits, Admission(limits))


@pytest.mark.parametrize(
    ("takes", "more", "code"),
    [
        (False, {"tools": [TOOL]}, "tools_unsupported"),
        (False, {"tools": [TOOL], "tool_choice": "required"}, "tools_unsupported"),
        (False, {"tools": [TOOL], "tool_choice": "none"}, None),
        (False, {"tools": []}, None),
        (False, {}, None),
        (True, {"tools": [TOOL]}, None),
    ],
)
async def test_tools_are_refused_where_the_template_has_no_place_for_them(
    takes: bool, more: dict[str, object], code: str | None
) -> None:
    place = house()
    place.takes_tools = takes
    transport = httpx.ASGITransport(make_api(place))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        body = {"messages": [{"role": "user", "content": "a"}], **more}
        answer = await client.post("/v1/chat/completions", json=body)
    assert answer.status_code == (400 if code else 200), answer.text
    assert answer.json().get("error", {}).get("code") == code


class Template(ScriptedEngine):
    def __init__(self, takes: bool | None) -> None:
        super().__init__()
        self.takes = takes

    async def takes_tools(self) -> bool:
        if self.takes is None:
            raise EngineBrokenError("no properties")
        return self.takes


@pytest.mark.parametrize(("takes", "learnt"), [(True, True), (False, False), (None, True)])
async def test_what_the_engine_does_not_say_is_left_to_it(takes: bool | None, learnt: bool) -> None:
    place = house()
    place.engine = Template(takes)
    await learn(place)
    assert place.takes_tools is learnt


async def test_an_embedding_service_asks_no_such_thing() -> None:
    place = house("embedding")
    place.engine = Template(False)
    await learn(place)
    assert place.takes_tools
