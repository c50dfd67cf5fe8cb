"""Run folder, listening socket, notification."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from sampan.errors import ExitCode, ServiceError
from sampan.gateway import listening, notify
from sampan.gateway.run_folder import check_socket_path, choose_base, run_folder
from sampan.spec.address import is_loopback


def test_the_run_folder_is_private_and_goes_away(short_folder: Path) -> None:
    with run_folder(short_folder) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.parent == short_folder
        (folder / "engine.sock").touch()
    assert list(short_folder.iterdir()) == []


def test_what_a_killed_service_left_is_swept_but_a_running_ones_is_kept(short_folder: Path) -> None:
    left = short_folder / "sampan-gateway-dead"
    left.mkdir()
    (left / "lock").touch()
    (left / "engine.sock").touch()
    foreign = short_folder / "other"
    foreign.mkdir()
    with run_folder(short_folder) as first, run_folder(short_folder) as second:
        assert first.is_dir()
        assert first != second
        assert not left.exists()
        assert foreign.is_dir()


def test_a_linked_folder_is_never_swept(short_folder: Path) -> None:
    precious = short_folder / "precious"
    precious.mkdir()
    (precious / "lock").touch()
    (short_folder / "sampan-gateway-link").symlink_to(precious)
    with run_folder(short_folder):
        assert (precious / "lock").exists()


def test_a_base_that_is_no_folder_is_named(tmp_path: Path) -> None:
    base = tmp_path / "file"
    base.touch()
    with pytest.raises(ServiceError) as caught, run_folder(base):
        pass
    assert (caught.value.key, caught.value.exit_code) == ("gateway.run-folder", ExitCode.SERVICE)
    assert str(base) in str(caught.value)


@pytest.mark.parametrize("path", ["/" + "x" * 108, "/a,b/engine.sock", '/a"b/engine.sock', "/" + "舟" * 36])
def test_paths_that_cannot_be_sockets_are_refused(path: str) -> None:
    with pytest.raises(ServiceError) as caught:
        check_socket_path(Path(path))
    assert caught.value.key == "gateway.socket-path"


def test_a_too_long_base_leaves_no_folder(tmp_path: Path) -> None:
    base = tmp_path / ("x" * 100)
    base.mkdir()
    with pytest.raises(ServiceError), run_folder(base):
        pass
    assert list(base.iterdir()) == []


def test_systemds_folder_comes_before_the_users(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    both = {"RUNTIME_DIRECTORY": f"{one}:/other", "XDG_RUNTIME_DIR": str(two)}
    assert choose_base(both) == one
    assert choose_base({**both, "RUNTIME_DIRECTORY": "/nowhere"}) == two
    assert choose_base({}).is_dir()


def test_a_taken_port_is_named_with_what_to_do() -> None:
    with listening.listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert listening.url_of(first) == f"http://127.0.0.1:{port}"
        with pytest.raises(ServiceError) as caught:
            listening.listen("127.0.0.1", port)
    assert (caught.value.key, caught.value.exit_code) == ("gateway.port-taken", ExitCode.SERVICE)
    assert str(port) in caught.value.message
    assert "--port" in caught.value.hint


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(ServiceError) as caught:
        listening.listen("192.0.2.1", 0)
    assert caught.value.key == "gateway.host-unknown"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("host", False),
    ],
)
def test_loopback_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told(short_folder: Path, abstract: bool) -> None:
    name = f"@sampan-{os.getpid()}" if abstract else str(short_folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name.replace("@", "\0", 1))
        assert notify.notify(notify.READY, {"NOTIFY_SOCKET": name})
        assert receiver.recv(100) == b"READY=1"


@pytest.mark.parametrize(
    "environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere"}, {"NOTIFY_SOCKET": "vsock:1"}]
)
def test_without_systemd_nothing_happens(environ: dict[str, str]) -> None:
    assert not notify.notify(notify.READY, environ)
