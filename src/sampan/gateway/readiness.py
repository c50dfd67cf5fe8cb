"""The golden set, asked of a fresh engine before anybody else may rely on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import orjson

from sampan import i18n
from sampan.gateway import vectors
from sampan.gateway.comparison import TextResult, judge_chat, judge_embedding
from sampan.gateway.engine import Ask, Engine, EngineFault, Lane
from sampan.gateway.house import House
from sampan.gateway.settings import CHAT
from sampan.spec.weights import GoldenChat, GoldenSet

_ALONE = 2  # so many texts are asked for alone as well: enough to see that passes do not mix texts up
_BULK = Ask(Lane.BULK)


async def learn(house: House) -> None:
    """What only the started engine knows of its model. Where it does not say, requests are passed on to it."""
    if house.model.task == CHAT:
        with suppress(EngineFault):
            house.takes_tools = await house.engine.takes_tools()


async def passes_selftest(house: House, golden: GoldenSet | None, say: Callable[[str], None]) -> bool:
    """Whether the engine computes where it must and answers as it must; the meter and a person are told.

    With no golden set nothing is asked.
    """
    if not house.on_its_device:
        house.meter.selftest_ok = False
        say(i18n.text("gateway.other-device", wanted=house.device, actual=house.actual_device))
        return False
    if golden is None or not (golden.embeddings or golden.chats):
        return True
    failed = [result for result in await golden_results(house.engine, golden) if not result.ok]
    house.meter.selftest_ok = not failed
    if failed:
        worst = min(failed, key=lambda result: result.score)
        values = {"count": len(failed), "score": f"{worst.score:.4f}", "minimum": f"{worst.minimum:g}"}
        say(i18n.text("gateway.selftest-failed", text=worst.text[:80], **values))
    return not failed


async def golden_results(engine: Engine, golden: GoldenSet) -> tuple[TextResult, ...]:
    """One result a text or prompt. A fault of the engine is a failed text."""
    try:
        found = await _embeddings(engine, golden) if golden.embeddings else ()
        return (*found, *[await _chat(engine, chat, golden.minimum_prefix) for chat in golden.chats])
    except EngineFault as fault:
        return (TextResult(f"{type(fault).__name__}: {fault}", 0.0, golden.minimum_cosine, ok=False),)


async def _embeddings(engine: Engine, golden: GoldenSet) -> tuple[TextResult, ...]:
    texts = [item.text for item in golden.embeddings]
    together = [vectors.to_floats(packed) for packed in (await engine.embed(texts, _BULK)).vectors]
    answers: list[list[Sequence[float]]] = [[vector] for vector in together]
    for index, text in enumerate(texts[:_ALONE]):
        answers[index].append(vectors.to_floats((await engine.embed([text], _BULK)).vectors[0]))
    return tuple(
        judge_embedding(item, given, golden.minimum_cosine)
        for item, given in zip(golden.embeddings, answers, strict=True)
    )


async def _chat(engine: Engine, golden: GoldenChat, minimum: int) -> TextResult:
    tokens = len(golden.continuation[:minimum].encode())  # a token is at least one byte
    body = orjson.dumps({"prompt": golden.prompt, "temperature": 0, "max_tokens": tokens})
    running = await engine.generate("/v1/completions", body, _BULK)
    try:
        raw = b"".join([chunk async for chunk in running.chunks()])
    finally:
        await running.close()
    try:
        text = str(orjson.loads(raw)["choices"][0]["text"])
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        text = ""
    return judge_chat(golden, text, minimum)
