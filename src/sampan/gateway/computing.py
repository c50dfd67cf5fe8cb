"""One pass through the engine: the vectors, and how many tokens each text had."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sampan.gateway.engine import Embedded, Engine, TextOrTokens
from sampan.gateway.lanes import Item


async def compute(engine: Engine, items: Sequence[Item], *, exact: bool) -> tuple[Embedded, Sequence[int]]:
    """Vectors, and the tokens of each text. The engine tells only their sum: enough where one request has all,
    unless ``exact``. Raises EngineFault.
    """
    texts = [item.text for item in items]
    if not exact and _is_of_one_request(items):
        found = await engine.embed(texts)
        if _is_of_one_request(items):  # still
            return found, (found.tokens, *([0] * (len(texts) - 1)))
        return found, await _count(engine, texts)
    counting = asyncio.ensure_future(_count(engine, texts))
    counting.add_done_callback(_look_at)
    try:
        found = await engine.embed(texts)  # not in a task of its own: it is to be sent before anything else is done
        return found, await counting
    finally:
        counting.cancel()


def _look_at(counting: asyncio.Future[list[int]]) -> None:
    """A fault of it need not be logged where ``embed`` had one as well."""
    if not counting.cancelled():
        counting.exception()


def _is_of_one_request(items: Sequence[Item]) -> bool:
    if len(items) == 1:
        return True
    if any(len(item.waiting) != 1 for item in items):
        return False
    return len({id(item.waiting[0][0]) for item in items}) == 1


async def _count(engine: Engine, texts: Sequence[TextOrTokens]) -> list[int]:
    words = [text for text in texts if isinstance(text, str)]
    numbers = iter(await engine.count(words) if words else ())
    return [next(numbers) if isinstance(text, str) else len(text) for text in texts]
