"""Logs: JSON lines, the audit log, its rotation, a full disk."""

from __future__ import annotations

import errno
import json
import logging
import os
from pathlib import Path

import pytest

from sampan.errors import FilesystemError
from sampan.gateway import llama_server
from sampan.gateway.audit_log import AuditLog
from sampan.gateway.call import Call
from sampan.gateway.logs import JsonFormatter


def call_of(path: str = "/v1/embeddings") -> Call:
    async def receive() -> dict[str, object]:
        return {}

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "client": ("10.0.0.7", 5000)}
    call = Call(scope, receive, 0.0)
    call.tokens = 12
    return call


def entries(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_entry_says_who_what_how_much_and_when(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path, 10_000, 3)
    log.write(call_of(), 200, 0.0123)
    log.write(call_of("/health"), 200, 0.001)
    log.close()
    (entry,) = entries(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {
        name: entry[name] for name in ("key", "client", "path", "status", "prompt_tokens", "milliseconds", "lane")
    } == {
        "key": "-",
        "client": "10.0.0.7",
        "path": "/v1/embeddings",
        "status": 200,
        "prompt_tokens": 12,
        "milliseconds": 12.3,
        "lane": "interactive",
    }
    assert str(entry["time"]).endswith("+00:00")


def test_it_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path, 600, 2)
    for _ in range(12):
        log.write(call_of(), 200, 0.01)
    log.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    assert all(file.stat().st_size <= 600 for file in tmp_path.iterdir())
    assert all(entries(file) for file in tmp_path.iterdir())
    again = AuditLog(path, 600, 2)
    again.write(call_of(), 200, 0.01)
    again.close()


def test_a_full_disk_costs_entries_and_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = AuditLog(tmp_path / "audit.log", 10_000, 2)
    log.write(call_of(), 200, 0.01)
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:20]))  # so a full disk begins
    log.write(call_of(), 200, 0.01)

    def full(_handle: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for _ in range(3):
        log.write(call_of(), 200, 0.01)
    monkeypatch.setattr(os, "write", real)
    log.write(call_of(), 200, 0.01)
    log.close()
    assert log.lost == 4
    assert len(entries(tmp_path / "audit.log")) == 2, "no half line is left"
    assert len([record for record in caplog.records if "entries are lost" in record.message]) == 1


def test_a_place_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FilesystemError):
        AuditLog(tmp_path / "none" / "audit.log", 100, 1)


def test_json_lines_have_the_fields_and_the_trace() -> None:
    error = ValueError("x")
    trace = (ValueError, error, None)
    record = logging.getLogger("a.b").makeRecord("a.b", logging.ERROR, "f", 1, "it %s", ("broke",), trace)
    record.fields = {"id": "7"}
    data = json.loads(JsonFormatter().format(record))
    assert (data["level"], data["logger"], data["message"], data["id"]) == ("error", "a.b", "it broke", "7")
    assert "ValueError: x" in data["trace"]


def test_the_engines_warning_about_its_own_private_door_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "sampan.engine")
    for line in ("W srv  llama_server: security: no API key is set and CORS allows all origins (see x)", "W other"):
        llama_server._log(line)
    assert [record.getMessage() for record in caplog.records] == ["W other"]
