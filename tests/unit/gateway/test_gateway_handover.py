"""What decides a change of processes, without any; the whole: tests/integration/test_gateway_handover.py."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from sampan.errors import ServiceError
from sampan.gateway import handover, process_facts

MIB = 1 << 20


def group(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.fixture
def meminfo(tmp_path: Path) -> Path:
    path = tmp_path / "meminfo"
    path.write_text("MemTotal: 9 kB\nMemAvailable:    1048576 kB\n")
    return path


def test_free_memory_is_the_machines_where_no_group_has_a_limit(tmp_path: Path, meminfo: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/a\n")
    group(tmp_path / "a", {"memory.max": "max\n", "memory.current": "5\n"})
    assert process_facts.free_bytes(meminfo, tmp_path, own) == 1024 * MIB
    assert process_facts.free_bytes(meminfo, tmp_path, tmp_path / "none") == 1024 * MIB
    assert process_facts.free_bytes(tmp_path / "none", tmp_path, own) is None


@pytest.mark.parametrize(
    ("line", "top", "names"),
    [
        ("0::/slice/service\n", "", ("memory.max", "memory.current", "inactive_file")),
        (
            "8:pids:/\n4:memory:/slice/service\n",
            "memory",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
)
def test_free_memory_is_the_least_of_all_groups_above(
    tmp_path: Path, meminfo: Path, line: str, top: str, names: tuple[str, str, str]
) -> None:
    own = tmp_path / "own"
    own.write_text(line)
    limit, used, cold = names
    inner = tmp_path / top / "slice" / "service"
    group(inner, {limit: str(600 * MIB), used: str(400 * MIB), "memory.stat": f"x 1\n{cold} {50 * MIB}\n"})
    assert process_facts.free_bytes(meminfo, tmp_path, own) == 250 * MIB
    group(inner.parent, {limit: str(500 * MIB), used: str(450 * MIB)})
    assert process_facts.free_bytes(meminfo, tmp_path, own) == 50 * MIB


def test_a_second_engine_needs_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_facts, "free_bytes", lambda: 100 * MIB)
    handover.check_room(100 * MIB)
    handover.check_room(None)
    with pytest.raises(ServiceError) as caught:
        handover.check_room(101 * MIB)
    assert caught.value.key == "gateway.handover-memory"
    assert "101 MiB" in str(caught.value)
    monkeypatch.setattr(process_facts, "free_bytes", lambda: None)
    handover.check_room(101 * MIB)


def test_what_a_predecessor_left_is_taken_and_kept_from_the_engine() -> None:
    ours, theirs = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    environ = {handover.VARIABLE: f"{listener.detach()},{theirs.detach()}", "PATH": "/bin"}
    found = handover.inherited(environ)
    assert found is not None
    with ours, found.listener:
        assert environ == {"PATH": "/bin"}
        assert found.listener.getsockname() == address
        assert not os.get_inheritable(found.listener.fileno())
        found.take_over()
        assert ours.recv(100) == b"ready"
        assert ours.recv(100) == b""


def test_a_first_service_inherits_nothing() -> None:
    assert handover.inherited({}) is None


@pytest.mark.parametrize("value", ["", "x,y", "99999,99998", "0", "-1,-1"])
def test_a_variable_that_names_no_descriptors_is_said(value: str) -> None:
    with pytest.raises(ServiceError) as caught:
        handover.inherited({handover.VARIABLE: value})
    assert caught.value.key == "gateway.handover-variable"


def test_descriptors_that_do_not_listen_are_said() -> None:
    one, other = socket.socketpair()
    with pytest.raises(ServiceError):
        handover.inherited({handover.VARIABLE: f"{one.detach()},{other.detach()}"})
