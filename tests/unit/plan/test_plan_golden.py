"""Whole plans as they were reviewed. ``SAMPAN_UPDATE_GOLDEN=1`` writes them anew; review the difference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.fakes.models import MINILM, SMOLLM2

from sampan.plan.planner import make_plan
from sampan.spec import codec
from sampan.spec.weights import WeightsInfo
from sampan.survey import known

PLANS = Path(__file__).parents[2] / "data" / "plans"


@pytest.mark.parametrize(
    ("weights", "target"),
    [
        (MINILM, "kylin-v10-sp3-kunpeng920"),
        (MINILM, "kylin-v10-phytium-d2000"),
        (SMOLLM2, "kylin-v10-sp3-kunpeng920"),
        (SMOLLM2, "zhaoxin"),
    ],
)
def test_the_plan_is_the_reviewed_one(weights: WeightsInfo, target: str) -> None:
    path = PLANS / f"{weights.task}-{target}.json"
    text = codec.to_json(make_plan(weights, known.load(target)))
    if os.environ.get("SAMPAN_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
