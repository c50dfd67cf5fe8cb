"""Thread counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.plan import threads

COUNTS = st.integers(1, 512)
MAYBE = st.none() | COUNTS
QUOTAS = st.none() | st.floats(0.01, 600, allow_nan=False)


@pytest.mark.parametrize(
    ("affinity", "cores", "quota", "numa", "expected"),
    [
        (128, 128, None, 4, 32),  # Kunpeng 920, two sockets: one node
        (8, 8, None, 1, 8),
        (8, 8, 2.5, 1, 2),  # a quota is floored: a third thread would be throttled
        (8, 8, 0.5, 1, 1),
        (16, 8, None, 1, 8),  # hyper-threads do not count
        (4, 128, None, 4, 4),  # a cpuset of four
        (2, None, None, None, 2),
        (1, 1, None, 2, 1),
    ],
)
def test_the_number_follows_from_cores_quota_and_nodes(
    affinity: int, cores: int | None, quota: float | None, numa: int | None, expected: int
) -> None:
    assert threads.choose(affinity, cores=cores, quota=quota, numa_nodes=numa) == expected


@given(st.integers(0, 512), MAYBE, QUOTAS, MAYBE)
def test_never_none_and_never_more_than_granted(
    affinity: int, cores: int | None, quota: float | None, numa: int | None
) -> None:
    count = threads.choose(affinity, cores=cores, quota=quota, numa_nodes=numa)
    assert 1 <= count <= max(1, affinity)
    assert count <= max(1.0, quota) if quota is not None else True


@given(st.integers(0, 512), COUNTS, QUOTAS, MAYBE)
def test_at_the_start_the_plan_holds_but_the_machine_has_the_last_word(
    planned: int, affinity: int, quota: float | None, numa: int | None
) -> None:
    count = threads.resolve(planned, affinity, quota=quota, numa_nodes=numa)
    assert 1 <= count <= affinity
    if planned == threads.DECIDE_ON_TARGET:
        assert count == threads.choose(affinity, quota=quota, numa_nodes=numa)
    elif quota is None:
        assert count == min(planned, affinity)
