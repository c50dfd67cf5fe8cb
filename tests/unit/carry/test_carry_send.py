"""Sending: whatever the line does, the file arrives whole or its name does not appear."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes.remote_files import RemoteFiles

from sampan.carry import compare
from sampan.carry.pace import Pace
from sampan.carry.send import Arrival, Trip
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, FilesystemError, NetworkError, SampanError, UsageError, VerificationError
from sampan.flow import sending

UNIT, SUB = 64 << 10, 4 << 10
PLACE, PART = "/data/x.tar", "/data/x.tar.carrying"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "UNIT", UNIT)
    monkeypatch.setattr(compare, "SUB", SUB)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("send") / "x.tar"
    path.write_bytes(random.Random(1).randbytes(5 * UNIT + 777))
    return path


def carry(file: Path, there: RemoteFiles, path: str = PLACE, rate: int | None = None) -> Arrival:
    return asyncio.run(Trip(file, path, "there", SilentProgress(), rate=rate, wait=0).run(there.connect))


def failure(kind: type[SampanError], file: Path, there: RemoteFiles) -> str:
    with pytest.raises(kind) as raised:
        carry(file, there)
    assert PLACE not in there.names
    return raised.value.key


def test_it_arrives_with_proof(file: Path) -> None:
    there = RemoteFiles()
    arrival = carry(file, there)
    assert there.files == {PLACE: bytearray(file.read_bytes())}
    assert arrival.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (arrival.breaks, arrival.resumed_bytes, arrival.sent_bytes) == (0, 0, file.stat().st_size)


@pytest.mark.parametrize("path", ["/data/", "/data"])
def test_a_folder_keeps_the_files_own_name(file: Path, path: str) -> None:
    there = RemoteFiles()
    assert carry(file, there, path).path == PLACE
    assert list(there.files) == [PLACE]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 3 * UNIT), max_size=20), st.sets(st.integers(0, 5 * UNIT), max_size=3))
def test_breaks_and_rot_anywhere_end_in_the_right_bytes(file: Path, breaks: list[int], rot: set[int]) -> None:
    there = RemoteFiles(breaks=breaks, rot=rot)
    carry(file, there)
    assert there.files == {PLACE: bytearray(file.read_bytes())}


def test_a_break_costs_at_most_what_was_not_compared(file: Path) -> None:
    there = RemoteFiles(breaks=[UNIT + 5, UNIT, 10, UNIT])
    arrival = carry(file, there)
    assert (arrival.breaks, there.connections) == (4, 5)
    assert arrival.sent_bytes < file.stat().st_size + 4 * UNIT


def test_what_an_earlier_run_left_is_taken_up_after_it_was_compared(file: Path) -> None:
    data = bytearray(file.read_bytes())
    there = RemoteFiles(files={PART: data[: 3 * UNIT + 100]})
    assert carry(file, there).resumed_bytes == 3 * UNIT + 100
    data[2 * UNIT + SUB + 1] ^= 1
    there = RemoteFiles(files={PART: data[: 3 * UNIT]})
    assert carry(file, there).resumed_bytes == 2 * UNIT + SUB
    assert there.files[PLACE] == file.read_bytes()


@pytest.mark.parametrize("left", [b"", b"other", b"z" * 9 * UNIT])
def test_rubbish_under_the_temporary_name_is_replaced(file: Path, left: bytes) -> None:
    there = RemoteFiles(files={PART: bytearray(left)})
    carry(file, there)
    assert there.files == {PLACE: bytearray(file.read_bytes())}


def test_the_same_file_there_already_is_an_arrival(file: Path) -> None:
    there = RemoteFiles(files={PLACE: bytearray(file.read_bytes())})
    assert carry(file, there).sent_bytes == 0


def test_another_file_of_that_name_is_left_alone(file: Path) -> None:
    there = RemoteFiles(files={PLACE: bytearray(b"precious")})
    assert failure(FilesystemError, file, there) == "carry.taken"
    assert there.files == {PLACE: bytearray(b"precious")}


@pytest.mark.parametrize("tells", [True, False])
def test_a_full_disk_is_told_before_or_where_that_cannot_be_when_it_happens(file: Path, tells: bool) -> None:
    there = RemoteFiles(room=2 * UNIT, tells_room=tells)
    assert failure(FilesystemError, file, there) == ("carry.remote-space" if tells else "carry.refused")
    assert there.files.keys() <= {PART}
    assert bool(there.files) != tells  # told beforehand: nothing was written


def test_a_disk_that_keeps_changing_bytes_never_gets_the_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = RemoteFiles()

    async def wrong(path: str) -> str:
        return "0" * 64

    monkeypatch.setattr(there, "digest", wrong)
    assert failure(VerificationError, file, there) == "carry.arrived-wrong"


def test_a_line_that_brings_nothing_further_is_given_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = RemoteFiles()

    async def dead(path: str) -> int | None:
        raise NetworkError("ssh.broken", host="there", detail="dead")

    monkeypatch.setattr(there, "size", dead)
    assert failure(NetworkError, file, there) == "carry.gave-up"
    assert there.connections == 8


def test_an_empty_file_arrives_too(tmp_path: Path) -> None:
    empty, there = tmp_path / "empty", RemoteFiles()
    empty.write_bytes(b"")
    assert carry(empty, there, "/data/empty").size_bytes == 0
    assert there.files == {"/data/empty": bytearray()}


def test_a_file_that_is_not_there_is_told_before_any_connection(tmp_path: Path) -> None:
    there = RemoteFiles()
    with pytest.raises(BadInputError):
        carry(tmp_path / "absent", there)
    assert there.connections == 0


def test_a_file_that_becomes_shorter_meanwhile_is_no_fault_of_the_line(tmp_path: Path) -> None:
    file, there = tmp_path / "x.tar", RemoteFiles(breaks=[UNIT])
    file.write_bytes(bytes(4 * UNIT))
    real = there.truncate

    async def shrink(path: str, size: int) -> None:
        os.truncate(file, UNIT)
        await real(path, size)

    there.truncate = shrink  # type: ignore[method-assign]
    assert failure(BadInputError, file, there) == "carry.shrunk"


def test_the_rate_holds_and_a_speed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr("sampan.carry.pace.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("sampan.carry.pace.asyncio.sleep", sleep)
    pace = Pace(300_000, 3_000_000)

    async def run() -> None:
        for _ in range(60):
            await pace.wait(50_000)

    asyncio.run(run())
    assert 9 < clock[0] <= 10.1
    assert "300 kB/s" in pace.note()


@pytest.mark.parametrize("target", ["root@host:/x", "ssh://host", "ssh://host/", "ssh://u:p@host/x", "ssh://h/a\nb"])
def test_what_names_no_place_is_refused(target: str) -> None:
    with pytest.raises(UsageError):
        sending.split(target)


def test_paths_are_of_the_root_or_of_the_login() -> None:
    assert sending.split("ssh://u@h:22/data/x.tar")[1] == "/data/x.tar"
    assert sending.split("ssh://u@h/~/x.tar")[1] == "x.tar"
