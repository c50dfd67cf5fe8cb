"""Carrying to real OpenSSH servers on loopback: with sftp, without, with nothing else; over lines that break."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.disks import small_disk
from tests.fakes.ssh_server import CuttingProxy, Server, running

from sampan.carry.send import CARRYING_SUFFIX, Arrival, Trip
from sampan.edge import carrier
from sampan.edge.progress import SilentProgress
from sampan.edge.ssh import Address, SshSettings
from sampan.errors import FilesystemError, MissingToolError, NetworkError, VerificationError
from sampan.flow import sending

pytestmark = pytest.mark.integration
SIZE = (9 << 20) + 4321
KINDS = {
    "sftp": "Subsystem sftp internal-sftp",
    "cat": "",
    "sftp-only": "Subsystem sftp internal-sftp\nForceCommand internal-sftp",
}
PROOF = {"sftp": "target", "cat": "target", "sftp-only": "read-back"}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "minilm-1.tar"
    path.write_bytes(random.Random(3).randbytes(SIZE))
    return path


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("sshd"), KINDS[kind]) as started:
        yield started


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def carry(
    file: Path, path: Path, address: Address, settings: SshSettings, *, rate: int | None = None, wait: float = 0.05
) -> Arrival:
    trip = Trip(file, str(path), str(address), SilentProgress(), rate=rate, wait=wait)
    return asyncio.run(trip.run(lambda: carrier.opened(address, settings)))


def test_it_arrives_with_a_proof_of_the_target(file: Path, server: Server, kind: str, tmp_path: Path) -> None:
    place = tmp_path / "it's here" / "minilm 1.tar"
    place.parent.mkdir()
    arrival = carry(file, place, server.address(), server.settings())
    assert place.read_bytes() == file.read_bytes()
    assert arrival.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (arrival.way, arrival.proof) == ("cat" if kind == "cat" else "sftp", PROOF[kind])
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_a_line_that_is_cut_every_few_megabytes(file: Path, server: Server, tmp_path: Path) -> None:
    proxy = CuttingProxy(server.port, [3 << 20, 100_000, 2 << 20])
    arrival = carry(file, tmp_path / "x.tar", server.address(proxy.port), server.settings())
    proxy.close()
    assert (tmp_path / "x.tar").read_bytes() == file.read_bytes()
    assert arrival.breaks == 3
    assert arrival.sent_bytes < SIZE + 3 * (3 << 20)  # what was on the line when it broke, not all from the start


def test_a_run_that_was_given_up_is_taken_up_by_the_next(file: Path, server: Server, tmp_path: Path) -> None:
    proxy = CuttingProxy(server.port, [6 << 20])
    place = tmp_path / "x.tar"

    async def cut_off() -> None:
        trip = Trip(file, str(place), "there", SilentProgress(), wait=0.01)
        address = server.address(proxy.port)
        task = asyncio.ensure_future(trip.run(lambda: carrier.opened(address, server.settings())))
        while not proxy.connections:
            await asyncio.sleep(0.01)
        proxy.close()
        await task

    with pytest.raises(NetworkError) as raised:
        asyncio.run(cut_off())
    assert raised.value.key == "carry.gave-up"
    assert not place.exists()
    assert place.with_name(f"x.tar{CARRYING_SUFFIX}").stat().st_size > 3 << 20
    arrival = carry(file, place, server.address(), server.settings())
    assert arrival.resumed_bytes > 3 << 20
    assert arrival.sent_bytes == SIZE - arrival.resumed_bytes
    assert place.read_bytes() == file.read_bytes()


def test_bytes_that_rotted_there_meanwhile_are_found(file: Path, server: Server, tmp_path: Path) -> None:
    left = bytearray(file.read_bytes()[: 7 << 20])
    left[5 << 20] ^= 1
    (tmp_path / f"x.tar{CARRYING_SUFFIX}").write_bytes(left)
    arrival = carry(file, tmp_path / "x.tar", server.address(), server.settings())
    assert arrival.resumed_bytes == 5 << 20
    assert (tmp_path / "x.tar").read_bytes() == file.read_bytes()


def test_another_file_of_that_name_stays(file: Path, server: Server, tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"precious")
    with pytest.raises(FilesystemError) as raised:
        carry(file, tmp_path / "x.tar", server.address(), server.settings())
    assert raised.value.key == "carry.taken"
    assert (tmp_path / "x.tar").read_bytes() == b"precious"


def test_a_folder_that_is_not_there_is_named(file: Path, server: Server, tmp_path: Path) -> None:
    with pytest.raises(FilesystemError) as raised:
        carry(file, tmp_path / "absent" / "x.tar", server.address(), server.settings())
    assert str(tmp_path / "absent") in raised.value.message


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    with small_disk(tmp_path / "small", 8) as place:
        yield place


def test_a_disk_without_room_is_told_before_anything_is_written(file: Path, server: Server, small_disk: Path) -> None:
    with pytest.raises(FilesystemError) as raised:
        carry(file, small_disk / "x.tar", server.address(), server.settings())
    assert raised.value.key == "carry.remote-space"
    assert list(small_disk.iterdir()) == []


def test_a_disk_that_fills_up_meanwhile_is_called_by_its_name_and_taken_up_again(
    file: Path, server: Server, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Trip._need_space
    asked: list[int] = []

    async def not_at_first(trip: Trip, remote: object, there: int) -> None:
        asked.append(there)
        if len(asked) > 1:
            await real(trip, remote, there)  # type: ignore[arg-type]

    monkeypatch.setattr(Trip, "_need_space", not_at_first)
    with pytest.raises(FilesystemError) as raised:
        carry(file, small_disk / "x.tar", server.address(), server.settings())
    assert raised.value.key == "carry.remote-space"
    assert [path.name for path in small_disk.iterdir()] == [f"x.tar{CARRYING_SUFFIX}"]
    monkeypatch.undo()
    subprocess.run(["mount", "-o", "remount,size=32m", small_disk], check=True)
    arrival = carry(file, small_disk / "x.tar", server.address(), server.settings())
    assert arrival.resumed_bytes > 4 << 20
    assert (small_disk / "x.tar").read_bytes() == file.read_bytes()


# What does not depend on the kind of server


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("sshd"), KINDS["sftp"]) as started:
        yield started


def test_three_hundred_kilobytes_a_second(file: Path, plain: Server, tmp_path: Path) -> None:
    small = tmp_path / "small.tar"
    small.write_bytes(file.read_bytes()[:1_200_000])
    started = time.monotonic()
    carry(small, tmp_path / "x.tar", plain.address(), plain.settings(), rate=300_000)
    assert 3.5 < time.monotonic() - started < 12
    assert (tmp_path / "x.tar").read_bytes() == small.read_bytes()


def test_a_wrong_host_key_is_never_tried_again(file: Path, plain: Server, tmp_path: Path) -> None:
    proxy = CuttingProxy(plain.port, [])
    with pytest.raises(VerificationError):
        carry(file, tmp_path / "x", plain.address(proxy.port), plain.settings(accept="SHA256:other"))
    assert proxy.connections == 3  # one for each family of host keys, of which the server has one
    assert list(tmp_path.glob("x*")) == []


def test_a_line_that_goes_dead_without_a_word_is_noticed(file: Path, plain: Server, tmp_path: Path) -> None:
    proxy = CuttingProxy(plain.port, [5 << 20], silent=True)
    settings = replace(plain.settings(), keepalive_seconds=0.3)
    arrival = carry(file, tmp_path / "x.tar", plain.address(proxy.port), settings)
    proxy.close()
    assert arrival.breaks == 1
    assert (tmp_path / "x.tar").read_bytes() == file.read_bytes()


def test_nobody_listens(file: Path, plain: Server, tmp_path: Path) -> None:
    with pytest.raises(NetworkError) as raised:
        carry(file, tmp_path / "x.tar", Address("127.0.0.1", 1), plain.settings())
    assert raised.value.key == "ssh.unreachable"


def test_an_account_for_neither_shell_nor_sftp(file: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        running(tmp_path_factory.mktemp("sshd"), "ForceCommand false") as closed,
        pytest.raises(MissingToolError) as raised,
    ):
        carry(file, Path("/nowhere"), closed.address(), closed.settings())
    assert raised.value.key == "carry.no-way"


def test_through_a_jump_host_and_through_a_mapped_port_of_loopback(file: Path, plain: Server, tmp_path: Path) -> None:
    identity = plain.folder / "identity"
    route = sending.Route(identities=(identity,), accept=plain.fingerprint)
    here = f"{plain.user}@127.0.0.1:{plain.port}"
    jumped = sending.carry(file, f"ssh://{here}{tmp_path}/", replace(route, jump=here), SilentProgress())
    assert jumped.path == f"{tmp_path}/{file.name}"
    mapped = replace(route, loopback=plain.port)
    target = f"ssh://{plain.user}@kylin.invalid{tmp_path}/second.tar"
    assert sending.carry(file, target, mapped, SilentProgress()).arrived
    assert (tmp_path / "second.tar").read_bytes() == file.read_bytes()
    assert sending.carry(file, target, mapped, SilentProgress()).sent_bytes == 0


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_a_killed_command_is_taken_up_by_the_next(file: Path, plain: Server, tmp_path: Path, share: float) -> None:
    part, key = tmp_path / f"x.tar{CARRYING_SUFFIX}", plain.folder / "identity"
    words = ["carry", str(file), f"ssh://{plain.user}@127.0.0.1:{plain.port}{tmp_path}/x.tar", "--identity", str(key)]
    command = [sys.executable, "-m", "sampan", *words, "--accept-host-key", plain.fingerprint, "--rate", "8M"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (part.exists() and part.stat().st_size > share * SIZE):
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (tmp_path / "x.tar").exists()
    done = subprocess.run([*command[:-2], "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)["resumed_bytes"] > share * SIZE
    assert (tmp_path / "x.tar").read_bytes() == file.read_bytes()


def test_below_the_logins_own_folder(file: Path, plain: Server) -> None:
    name = f"sampan-carried-{os.getpid()}.tar"
    home = Path(subprocess.check_output(["sh", "-c", f"eval echo ~{plain.user}"], text=True).strip())
    route = sending.Route(identities=(plain.folder / "identity",), accept=plain.fingerprint)
    try:
        sending.carry(file, f"ssh://{plain.user}@127.0.0.1:{plain.port}/~/{name}", route, SilentProgress())
        assert (home / name).stat().st_size == SIZE
    finally:
        (home / name).unlink(missing_ok=True)
