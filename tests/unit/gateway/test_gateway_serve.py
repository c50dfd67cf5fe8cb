"""What is refused before any engine is started. A whole life: tests/integration/test_gateway_life.py."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.gateway import settings

from sampan.errors import ServiceError, UsageError
from sampan.gateway import keys
from sampan.gateway.serve import serve
from sampan.gateway.settings import Files, ServedModel, ServeSettings


@pytest.fixture
def given(short_folder: Path) -> ServeSettings:
    """Of an engine that is not there: where it were started, it would be said."""
    run = short_folder / "run"
    run.mkdir()
    return ServeSettings(
        executable=short_folder / "llama-server",
        variant="x86-64-v2",
        weights=short_folder / "m.gguf",
        model=ServedModel("fake", "embedding", 8),
        engine=settings(embedding=True),
        threads=1,
        port=0,
        run_folder=run,
    )


def test_a_taken_port_starts_no_engine(given: ServeSettings) -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ServiceError) as caught:
        serve(replace(given, port=other.getsockname()[1]), say=said.append)
    assert caught.value.key == "gateway.port-taken"
    assert said == []
    assert given.run_folder is not None
    assert list(given.run_folder.iterdir()) == []


def test_an_open_address_needs_keys(given: ServeSettings) -> None:
    said: list[str] = []
    with pytest.raises(UsageError) as caught:
        serve(replace(given, host="0.0.0.0"), say=said.append)
    assert caught.value.key == "gateway.no-keys"
    assert said == []


def test_an_open_address_with_keys_is_warned_of_where_it_has_no_certificate(
    given: ServeSettings, tmp_path: Path
) -> None:
    said: list[str] = []
    path = tmp_path / "keys.json"
    keys.save(path, [keys.make(keys.Key("", "somebody", ""))[0]])
    with pytest.raises(ServiceError) as caught:
        serve(replace(given, host="0.0.0.0", files=Files(keys=path)), say=said.append)
    assert caught.value.key == "gateway.engine-not-run"
    assert "0.0.0.0" in said[0]
    assert "Warning" in said[0]
