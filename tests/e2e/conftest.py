"""Bundles that several end-to-end tests look at; each is shipped once."""

from __future__ import annotations

import pytest
from tests.e2e.ships import D2000, KUNPENG, MINILM, SMOLLM2, Shipped, ship


@pytest.fixture(scope="session")
def minilm_kunpeng(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """Embeddings for ARMv8.2 with 64 KiB pages."""
    return ship(MINILM, KUNPENG, tmp_path_factory.mktemp("minilm-kunpeng"), "--name", "minilm")


@pytest.fixture(scope="session")
def smollm2_kunpeng(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """Chat for ARMv8.2 with 64 KiB pages."""
    return ship(SMOLLM2, KUNPENG, tmp_path_factory.mktemp("smollm2-kunpeng"), "--name", "smollm2")


@pytest.fixture(scope="session")
def minilm_d2000(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """Embeddings for ARMv8.0."""
    return ship(MINILM, D2000, tmp_path_factory.mktemp("minilm-d2000"), "--name", "minilm")


@pytest.fixture(scope="session")
def minilm_here(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """Embeddings for this machine."""
    return ship(MINILM, "this", tmp_path_factory.mktemp("minilm-here"), "--name", "minilm")
