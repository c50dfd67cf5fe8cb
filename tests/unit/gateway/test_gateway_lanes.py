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


def test_a_job_is_not_starved_by_people_whose_texts_fill_every_pass() -> None:
    lanes = Lanes(2.0)
    added(lanes, Lane.BULK, 0.0, texts=3)
    passes = []
    for now in range(12):
        added(lanes, Lane.INTERACTIVE, now)
        room = sum(item.tokens for job in lanes.jobs() for item in job.queue if job.ask.lane is Lane.INTERACTIVE)
        found = [str(item.text).split()[0] for item in lanes.take(now, SLOTS, room, 1)]
        passes.append(found)
    assert sum(found.count("bulk") for found in passes) == 3
    assert all(found for found in passes)
    # nor are people starved by it: it has a pass alone at most every two seconds
    assert all("interactive" in passes[at] or "interactive" in passes[at + 1] for at in range(11))


def test_a_young_job_at_the_head_does_not_hold_an_old_one_back() -> None:
    lanes = Lanes(2.0)
    added(lanes, Lane.BULK, 0.0, texts=2)
    added(lanes, Lane.INTERACTIVE, 0.0, texts=40)
    added(lanes, Lane.BULK, 2.0, texts=2)
    lanes._lanes[Lane.BULK].rotate(-1)  # as after a text of the old one was taken
    assert "bulk" in taken(lanes, 2.5)


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_a_pass_holds_no_more_texts_than_there_are_slots(slots: int) -> None:
    lanes = Lanes(2.0)
    added(lanes, Lane.BULK, 0.0, texts=20)
    added(lanes, Lane.INTERACTIVE, 0.0, texts=40)
    sizes = [len(lanes.take(now, slots, 1000, slots)) for now in (1.0, 3.0, 3.5, 6.0)]
    assert sizes == [slots] * 4


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
