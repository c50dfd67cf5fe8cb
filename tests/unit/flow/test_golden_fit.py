"""A service that was planned for short texts is not asked a long one at its start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.bundle_parts import make_plan, make_weights, put

from sampan.flow.golden_fit import fitting
from sampan.plan.options import PlanOptions
from sampan.plan.settings import longest_input
from sampan.spec.plan import Plan
from sampan.spec.weights import GoldenChat, GoldenEmbedding, GoldenPair, GoldenSet, WeightsInfo

TEXTS = ("short", "怎么重置密码", "x" * 60, "word " * 200)
SET = GoldenSet("m", "r", embeddings=tuple(GoldenEmbedding(text, (1.0,)) for text in TEXTS))


@pytest.fixture
def info(tmp_path: Path) -> WeightsInfo:
    return make_weights(put(tmp_path / "m.gguf", b"GGUF"), put(tmp_path / "golden.json", b"{}"))


def plan_for(longest: int, task: str = "embedding") -> Plan:
    plan = make_plan()
    return replace(plan, task=task, settings=replace(plan.settings, longest=longest))


def kept(longest: int, info: WeightsInfo) -> tuple[str, ...]:
    return tuple(item.text for item in fitting(SET, plan_for(longest), info).embeddings)


def test_all_are_asked_where_the_models_own_limit_is_planned(info: WeightsInfo) -> None:
    own = longest_input(info, PlanOptions())
    for longest in (0, own, own + 1, 8192):
        assert kept(longest, info) == TEXTS


@pytest.mark.parametrize(("longest", "count"), [(64, 3), (63, 2), (22, 2), (21, 1), (9, 1), (8, 0)])
def test_only_what_certainly_fits_is_asked_of_a_shorter_plan(info: WeightsInfo, longest: int, count: int) -> None:
    assert longest_input(info, PlanOptions()) > 64
    assert kept(longest, info) == TEXTS[:count]
    assert all(len(text.encode()) + 4 <= longest for text in kept(longest, info))


def test_conversations_and_pairs_count_both_of_their_texts(info: WeightsInfo) -> None:
    chats = (GoldenChat("ab", "cd"), GoldenChat("ab", "c" * 40))
    pairs = (GoldenPair("q", "d", 0.5), GoldenPair("q", "d" * 40, 0.5))
    golden = GoldenSet("m", "r", chats=chats, pairs=pairs)
    for task in ("chat", "rerank"):
        left = fitting(golden, plan_for(20, task), info)
        assert (left.chats, left.pairs) == (chats[:1], pairs[:1])
