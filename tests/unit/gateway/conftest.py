"""Only loopback and Unix sockets: a test that reaches further fails."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def only_local_sockets() -> Iterator[None]:
    pytest_socket.socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """pytest's own temporary paths are too long for a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="gw") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def module_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gw") as name:
        yield Path(name)
