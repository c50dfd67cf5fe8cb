"""Which golden questions a service that was planned for shorter texts can be asked."""

from __future__ import annotations

from dataclasses import replace

from sampan.plan.options import PlanOptions
from sampan.plan.settings import longest_input
from sampan.spec.plan import Plan
from sampan.spec.weights import GoldenSet, WeightsInfo

_GOLDEN_LONGEST = 512  # tokens: no golden text is longer, whatever the model takes
_ENDS = 4  # tokens at most: start, end and, between a pair, the separator twice


def fitting(golden: GoldenSet, plan: Plan, info: WeightsInfo) -> GoldenSet:
    """``golden`` without what this plan's service may refuse as too long.

    All of it where the plan accepts what the model's own limit allows. Else what certainly fits stays: no tokenizer
    makes more tokens of a text than it has bytes in UTF-8, its ends aside.
    """
    longest = plan.settings.longest
    own = longest_input(info, PlanOptions()) if plan.task == "embedding" else _GOLDEN_LONGEST
    if not longest or longest >= min(own, _GOLDEN_LONGEST):
        return golden

    def fits(*texts: str) -> bool:
        return sum(len(text.encode()) for text in texts) + _ENDS <= longest

    return replace(
        golden,
        embeddings=tuple(item for item in golden.embeddings if fits(item.text)),
        chats=tuple(chat for chat in golden.chats if fits(chat.prompt, chat.continuation)),
        pairs=tuple(pair for pair in golden.pairs if fits(pair.query, pair.document)),
    )
