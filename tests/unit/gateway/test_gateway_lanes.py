"""What a person waits for beside a job: one pass, and none of the job's texts in their own."""

from __future__ import annotations

import pytest

from sampan.gateway.engine import Ask, Lane
from sampan.gateway.lanes import Item, Job, Lanes
from sampan.gateway.pace import Pacer

SLOTS = 8


def added(lanes: Lanes, lane: Lane, now: float, texts: int = 1) -> None:
    job = Job(texts, Ask(lane), now, lambda _error: None)
    items = [Item(f"{lane.value} {now} {number}") for number in range(texts)]
    for place, item in enumerate(items):
        job.wait_for(item, place)
    lanes.add(job, items)


def taken(lanes: Lanes, now: float, bulk_texts: int = SLOTS) -> list[str]:
    return [str(item.text).split()[0] for item in lanes.take(now, SLOTS, 1000, bulk_texts)]


def test_a_job_that_gets_passes_of_its_own_never_rides_with_a_person() -> None:
    lanes = Lanes(2.0)
    added(lanes, Lane.BULK, 0.0, texts=100)
    for now in range(1, 9):
        assert set(taken(lanes, now, bulk_texts=2)) == {"bulk"}
        added(lanes, Lane.INTERACTIVE, now)
        assert taken(lanes, now + 0.5) == ["interactive"]


def test_a_job_that_people_leave_no_pass_rides_with_them_once_it_has_aged() -> None:
    lanes = Lanes(2.0)
    added(lanes, Lane.BULK, 0.0, texts=100)
    found = []
    for now in (0.5, 1.5, 2.5, 3.5):
        added(lanes, Lane.INTERACTIVE, now, texts=20)
        found.append(taken(lanes, now).count("bulk"))
    assert found == [0, 0, 2, 2]


@pytest.mark.parametrize(("text_seconds", "expected"), [(0.010, 1), (0.005, 2), (0.001, 8)])
def test_a_pass_of_a_job_takes_no_longer_than_one_for_people(text_seconds: float, expected: int) -> None:
    pacer = Pacer(SLOTS)
    person, bulk = item_of(Lane.INTERACTIVE), item_of(Lane.BULK)
    pacer.measured([bulk] * 4, 4 * text_seconds, 0.0)
    pacer.measured([person], 0.012, 1.0)
    pacer.measured([person, *[bulk] * 3], 0.5, 1.5)  # says nothing of a person's own pass
    assert pacer.bulk_texts(2.0) == expected
    assert pacer.bulk_texts(60.0) == SLOTS


def item_of(lane: Lane) -> Item:
    item = Item("text")
    Job(1, Ask(lane), 0.0, lambda _error: None).wait_for(item, 0)
    return item
