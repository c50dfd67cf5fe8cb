"""A web server on loopback, one for each module of tests and empty before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.fakes.http_server import Site, served


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with served() as site:
        yield site


@pytest.fixture
def site(server: Site) -> Site:
    server.pages.clear()
    server.requests.clear()
    return server
