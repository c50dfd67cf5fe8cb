"""Parts are cut, checked, asked for by number and joined; whatever ends the joining, nothing is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.carry import parts
from sampan.carry.join import JOINING_SUFFIX, examine, find_list, join, read_list
from sampan.carry.parts import PartList
from sampan.carry.split import again, split
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, FilesystemError, SampanError, UsageError, VerificationError

QUIET = SilentProgress()
CONTENT = random.Random(7).randbytes(100_003)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "mini-1.tar"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def cut(whole: Path, tmp_path: Path) -> tuple[Path, PartList]:
    folder = tmp_path / "parts"
    return folder, split(whole, folder, "7", None, QUIET)


def test_cut_and_joined_it_is_the_same(cut: tuple[Path, PartList], tmp_path: Path) -> None:
    folder, listed = cut
    assert [part.file for part in listed.parts] == [f"mini-1.tar.{n:03d}" for n in range(1, 8)]
    assert {part.size for part in listed.parts[:-1]} == {14287}
    assert read_list(find_list(folder)) == listed
    assert join(folder, listed, tmp_path / "new", QUIET).read_bytes() == CONTENT


def test_coreutils_alone_check_and_join_the_parts(cut: tuple[Path, PartList]) -> None:
    command = (
        "sha256sum -c mini-1.tar.parts.sha256 && cat mini-1.tar.[0-9]* >mini-1.tar && sha256sum -c mini-1.tar.sha256"
    )
    done = subprocess.run(["sh", "-c", command], cwd=cut[0], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == 8


def test_what_lacks_is_named_in_one_line_and_cut_again(
    cut: tuple[Path, PartList], whole: Path, tmp_path: Path
) -> None:
    folder, listed = cut
    (folder / "mini-1.tar.003").unlink()
    for number, damage in ((5, b"x"), (6, b"")):
        (folder / f"mini-1.tar.{number:03d}").write_bytes(damage)
    flipped = folder / "mini-1.tar.001"
    flipped.write_bytes(bytes([flipped.read_bytes()[0] ^ 1]) + flipped.read_bytes()[1:])
    with pytest.raises(VerificationError) as raised:
        join(folder, listed, tmp_path / "new", QUIET)
    assert raised.value.message.startswith("need 1,3,5-6 ")
    assert "sampan split mini-1.tar --only 1,3,5-6" in raised.value.hint
    assert not (tmp_path / "new").exists()
    again(whole, folder, listed, parts.numbers("1,3,5-6", 7), QUIET)
    assert join(folder, listed, tmp_path / "new", QUIET).read_bytes() == CONTENT


def test_parts_of_another_file_are_never_given(cut: tuple[Path, PartList], whole: Path) -> None:
    folder, listed = cut
    before = (folder / "mini-1.tar.002").read_bytes()
    for content in (CONTENT[:-1], bytes(len(CONTENT))):
        whole.write_bytes(content)
        with pytest.raises(VerificationError) as raised:
            again(whole, folder, listed, (2,), QUIET)
        assert raised.value.key == "carry.other-file"
        assert (folder / "mini-1.tar.002").read_bytes() == before


@pytest.mark.parametrize(
    ("wanted", "total", "expected"),
    [("12", 100, 9), ("1", 100, 100), ("fat32", 10 << 30, 4095 << 20), ("dvd", 10 << 30, 4480 << 20)],
)
def test_sizes_of_parts(wanted: str, total: int, expected: int) -> None:
    assert parts.part_size(total, wanted) == expected


def test_senseless_sizes_are_refused() -> None:
    assert parts.part_size(1000, "450M", 450) == 450
    for wanted, size, key in (
        ("floppy", None, "size"),
        ("0", None, "size"),
        ("10001", None, "too-many"),
        ("1K", 1, None),
    ):
        if key is None:
            assert parts.part_size(1000, wanted, size) == 1
            continue
        with pytest.raises(UsageError) as raised:
            parts.part_size(100_000, wanted, size)
        assert raised.value.key == f"carry.{key}"


def test_a_fat32_part_fits_fat32_and_a_dvd_part_a_dvd() -> None:
    assert parts.MEDIA["fat32"] <= (1 << 32) - 1
    assert parts.MEDIA["dvd"] < 4_700_372_992
    assert parts.MEDIA["cd"] < 737_280_000


@given(st.sets(st.integers(1, 300), min_size=1))
def test_numbers_read_back_as_written(wanted: set[int]) -> None:
    assert parts.numbers(parts.join_numbers(wanted), 300) == tuple(sorted(wanted))


@pytest.mark.parametrize("text", ["", "0", "8", "x", "3-", "-3", "5-3", "1,,2", "1;2", "٣x"])
def test_numbers_that_name_no_part_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parts.numbers(text, 7)


CHANGES: dict[str, Callable[[dict[str, object]], object]] = {
    "a path as name": lambda data: data.update(name="../etc/passwd"),
    "a path as part": lambda data: data["parts"][0].update(file="/etc/passwd"),  # type: ignore[index]
    "sizes that do not add up": lambda data: data.update(size=5),
    "a negative size": lambda data: data["parts"][0].update(size=-1),  # type: ignore[index]
    "no digest": lambda data: data.update(sha256="x"),
    "no parts": lambda data: data.update(parts=[], size=0),
    "parts out of order": lambda data: data["parts"].reverse(),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_list_that_would_do_harm_is_refused(cut: tuple[Path, PartList], change: str) -> None:
    path = find_list(cut[0])
    data = json.loads(path.read_text())
    CHANGES[change](data)
    path.write_text(json.dumps(data))
    with pytest.raises(BadInputError):
        read_list(path)


def test_the_list_is_found_by_folder_part_or_name(cut: tuple[Path, PartList], tmp_path: Path) -> None:
    folder = cut[0]
    path = folder / "mini-1.tar.parts.json"
    for given_path in (folder, path, folder / "mini-1.tar.004"):
        assert find_list(given_path) == path
    shutil.copy(path, folder / "other.tar.parts.json")
    assert find_list(folder / "mini-1.tar.004") == path
    for wrong in (folder, tmp_path / "none"):
        with pytest.raises(BadInputError) as raised:
            find_list(wrong)
        assert raised.value.key == "carry.no-list"


def test_a_full_disk_is_said_before_anything_is_written(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sampan.carry.split.disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(FilesystemError) as raised:
        split(whole, tmp_path / "parts", "3", None, QUIET)
    assert raised.value.key == "carry.space"
    assert list((tmp_path / "parts").iterdir()) == []


def test_cutting_again_first_takes_the_old_lists_away(
    cut: tuple[Path, PartList], whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sampan.carry.split._cut", fail)
    with pytest.raises(FilesystemError):
        split(whole, cut[0], "3", None, QUIET)
    assert not list(cut[0].glob("*.parts.*"))


def test_joining_with_the_parts_consumed_needs_little_room(
    cut: tuple[Path, PartList], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, listed = cut
    used = []
    real = os.fsync

    def watch(handle: int) -> None:
        real(handle)
        used.append(sum(path.stat().st_size for path in folder.glob("mini-1.tar.*") if "parts" not in path.name))

    monkeypatch.setattr(os, "fsync", watch)
    assert join(folder, listed, folder, QUIET, consume=True).read_bytes() == CONTENT
    assert max(used) <= len(CONTENT) + listed.parts[0].size + 100
    assert not [path for path in folder.iterdir() if path.name.endswith((".001", ".007", JOINING_SUFFIX))]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("at", range(0, 40, 3))
def test_a_joining_killed_anywhere_is_taken_up_again(
    cut: tuple[Path, PartList], at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, listed = cut
    calls = 0

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if calls > at:
                raise Killed
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in ("fsync", "write", "ftruncate"):
            patch.setattr(os, name, dying(getattr(os, name)))
        patch.setattr(Path, "unlink", dying(Path.unlink))
        patch.setattr(Path, "rename", dying(Path.rename))
        try:
            join(folder, listed, folder, QUIET, consume=True)
        except Killed:
            assert not (folder / "mini-1.tar").exists()
    if not (folder / "mini-1.tar").exists():
        join(folder, listed, folder, QUIET, consume=True)
    assert (folder / "mini-1.tar").read_bytes() == CONTENT


def test_a_bad_part_stops_the_consuming_before_it_begins(cut: tuple[Path, PartList]) -> None:
    folder, listed = cut
    (folder / "mini-1.tar.007").write_bytes(b"x")
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(SampanError):
        join(folder, listed, folder, QUIET, consume=True)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert examine(folder, listed, QUIET).numbers == "7"
