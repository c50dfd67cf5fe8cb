"""What would make a model fit that does not: smaller settings, or how small its weights must be."""

from __future__ import annotations

from sampan import i18n
from sampan.plan import memory
from sampan.plan.options import PlanOptions
from sampan.plan.settings import candidates
from sampan.plan.sizes import human
from sampan.spec.weights import WeightsInfo

_LENGTHS = (4096, 2048, 1024, 512, 256)


def remedy(weights: WeightsInfo, available: int) -> str:
    """One sentence in the language in force, for the hint of ``plan.memory``; ``available`` in bytes."""
    smallest = 0
    for tokens in dict.fromkeys(min(length, weights.context_length) for length in _LENGTHS):
        smallest = _least(weights, tokens)
        if smallest <= available:
            return i18n.text("plan.remedy.settings", tokens=tokens, needed=human(smallest))
    room = available - (smallest - weights.size_bytes)
    if room <= 0:
        return i18n.text("plan.remedy.none", needed=human(smallest))
    return i18n.text(
        "plan.remedy.weights", quantization=weights.quantization, now=human(weights.size_bytes), room=human(room)
    )


def _least(weights: WeightsInfo, tokens: int) -> int:
    """Bytes with one slot and this length, in the leanest form."""
    options = PlanOptions(max_tokens=tokens, concurrency=1)
    forms = candidates(weights, options, threads=1, memory_known=True)
    return min(memory.total(memory.rows(weights, form)) for form in forms)
