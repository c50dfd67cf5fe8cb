"""An independent reference in numpy: it knows the formulas of the models and nothing of the engine under test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread: the matrices are small, and on a busy machine threads that wait made all 18 times slower."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
