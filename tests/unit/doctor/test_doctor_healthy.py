"""Healthy logs give nothing above information: see tests/data/doctor/healthy."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampan.doctor import diagnose, facts
from sampan.survey import known

LOGS = sorted((Path(__file__).parents[2] / "data" / "doctor" / "healthy").glob("*.log"))


def test_there_are_fifty() -> None:
    assert len(LOGS) >= 50
    recorded = [log for log in LOGS if log.name.startswith("real-")]  # what a real, successful run printed
    assert len(recorded) >= 10


@pytest.mark.parametrize("log", LOGS, ids=[log.stem for log in LOGS])
def test_nothing_above_information(log: Path) -> None:
    for target in ("", "kylin-v10-sp3-kunpeng920"):
        found = diagnose.of_text(log.read_bytes(), facts.of_profile(known.load(target), target) if target else {})
        assert [(one.code, one.evidence[0].text) for one in found.known] == []
