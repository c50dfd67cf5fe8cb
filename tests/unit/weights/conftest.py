"""A store below the test's own folder, and a fetcher that must not be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.fetchers import OneFileFetcher

from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.spec.weights import WeightsInfo
from sampan.weights.resolve import resolve

Resolve = Callable[..., WeightsInfo]


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "store")


@pytest.fixture
def take(store: DiskStore) -> Resolve:
    """``resolve`` with everything but the source and the quantization given."""

    def run(source: Path | str, quantization: str = "auto") -> WeightsInfo:
        return resolve(
            str(source),
            quantization=quantization,
            fetcher=OneFileFetcher(None),
            store=store,
            progress=SilentProgress(),
        )

    return run
