"""``POST /v1/chat/completions`` and ``POST /v1/completions``: checked, then passed through as the engine sends it."""

from __future__ import annotations

import logging
import re
from contextlib import ExitStack

from starlette.types import Send

from sampan.gateway.bodies import read_body
from sampan.gateway.call import Answer, Call
from sampan.gateway.disconnect import unless_client_leaves
from sampan.gateway.engine import Ask, EngineFault, Generation
from sampan.gateway.envelope import ApiError, from_fault
from sampan.gateway.house import House
from sampan.gateway.replies import ClientGoneError, Header, Reply, careful
from sampan.gateway.requests import Body, check_generation

logger = logging.getLogger("sampan.gateway")
_USUAL_TOKENS = 256  # counted for an answer whose length the client leaves open
_TAIL_BYTES = 4096  # of an answer: its usage stands at the end
_PROMPT = re.compile(rb'"(?:prompt_tokens|prompt_n)":\s*(\d+)')
_COMPLETION = re.compile(rb'"(?:completion_tokens|predicted_n)":\s*(\d+)')


class Generations:
    """Both endpoints over one engine."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def chat(self, call: Call) -> Answer:
        """Raises ApiError, ClientGoneError."""
        return await self._forward(call, "/v1/chat/completions", "messages")

    async def completion(self, call: Call) -> Answer:
        """Raises ApiError, ClientGoneError."""
        return await self._forward(call, "/v1/completions", "prompt")

    async def _forward(self, call: Call, path: str, field: str) -> Answer:
        house = self._house
        body = await read_body(call, house.admission)
        data = check_generation(body, house.model, field)
        if not house.takes_tools and data.get("tools") and data.get("tool_choice") != "none":
            raise ApiError("tools_unsupported", "tools", model=house.model.id)
        ask = call.settle_ask(house.limits.request_seconds, bulk=False)
        with ExitStack() as inside:
            inside.enter_context(house.admission.admitted(_tokens(data, body)))
            try:
                running = await unless_client_leaves(call, house.engine.generate(path, body, ask))
                if data.get("stream") is True:
                    return Relay(call, running, inside.pop_all())
                return await unless_client_leaves(call, _whole(call, running))
            except EngineFault as fault:
                raise from_fault(fault, field) from fault


def _tokens(data: Body, body: bytes) -> int:
    """What it may come to, roughly."""
    asked = data.get("max_completion_tokens", data.get("max_tokens"))
    return len(body) // 4 + (asked if type(asked) is int and 0 < asked < 1 << 20 else _USUAL_TOKENS)


async def _whole(call: Call, running: Generation) -> Reply:
    try:
        pieces = [chunk async for chunk in running.chunks()]
    finally:
        await running.close()
    body = b"".join(pieces)
    _count(call, body[-_TAIL_BYTES:])
    return Reply(body, kind=running.content_type.encode())


def _count(call: Call, tail: bytes) -> None:
    """The tokens that the engine reports; they stand in the last event of a stream too."""
    for pattern, name in ((_PROMPT, "tokens"), (_COMPLETION, "completion_tokens")):
        found = pattern.findall(tail)
        if found:
            setattr(call, name, int(found[-1]))


class Relay:
    """Sends each piece when it comes. A client that leaves ends the generation in the engine."""

    status = 200

    def __init__(self, call: Call, running: Generation, inside: ExitStack) -> None:
        self._call = call
        self._running = running
        self._inside = inside
        self._tail = b""
        self.headers: list[Header] = [
            (b"content-type", running.content_type.encode()),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),  # nginx must not buffer
        ]

    async def send(self, send: Send) -> None:
        """See call.Answer."""
        self._call.ask = Ask(self._call.ask.lane)  # it has begun: from here on only silence is too long
        try:
            await careful(send, {"type": "http.response.start", "status": self.status, "headers": self.headers})
            await unless_client_leaves(self._call, self._send_all(send))
        except ClientGoneError:
            self._call.code = "client_left"
        finally:
            self._inside.close()
            _count(self._call, self._tail)
            await self._running.close()

    async def _send_all(self, send: Send) -> None:
        try:
            async for chunk in self._running.chunks():
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
                await careful(send, {"type": "http.response.body", "body": chunk, "more_body": True})
        except EngineFault as fault:
            # The status is sent already, so the error travels as an event; OpenAI's clients raise it.
            error = from_fault(fault)
            self._call.code = error.code
            await careful(
                send, {"type": "http.response.body", "body": b"data: " + error.body() + b"\n\n", "more_body": True}
            )
        await careful(send, {"type": "http.response.body", "body": b"", "more_body": False})
