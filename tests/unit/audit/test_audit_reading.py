"""Reading many files: processes, cache, files that end their reader."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.audit.gpu_files import Image, container, library

from sampan.audit import elf, facts_cache, reading
from sampan.audit.audit import audit
from sampan.audit.facts import Damaged, ElfFacts
from sampan.audit.families import READERS
from sampan.errors import BadInputError
from sampan.spec.target import TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]


def _large(content: bytes) -> bytes:
    """Large enough to be kept."""
    return content + bytes(reading._WORTH_KEEPING)


@pytest.fixture
def files(put: Put, make: Make) -> list[str]:
    """Some of every kind: sound, damaged, with GPU code, no ELF at all."""
    needs = {"libc.so.6": {"GLIBC_2.17": ["puts"], "GLIBC_2.28": ["fcntl64"]}}
    contents = {
        "a": make(soname="a", needed=["libc.so.6"], needs=needs, provides=["A_1"], exports={"f": "A_1"}).build(),
        "b": make(interpreter="/lib/ld.so", kind=2).build(),
        "c": library(container(Image(61), Image(90, ptx=True))),
        "d": b"\x7fELF and then nothing",
        "e": b"no ELF",
    }
    return [str(put(name, _large(content))) for name, content in contents.items()]


def _read(files: list[str], cache: Path | None = None, workers: int = 1) -> dict[str, ElfFacts | Damaged]:
    return reading.read_all(files, cache, lambda _: None, workers)


def test_every_elf_file_is_read_in_order(files: list[str]) -> None:
    found = _read(files)
    assert list(found) == files[:4]
    assert isinstance(found[files[3]], Damaged)


def test_processes_read_the_same(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_WORTH_PROCESSES", 0)
    done: list[str] = []
    assert reading.read_all(files, None, done.append, 2) == _read(files)
    assert sorted(done) == files[:4]


def test_the_cache_gives_back_what_was_read(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    first = _read(files, cache)
    kept = list(cache.rglob("*.json"))
    assert len(kept) == 4

    def refuse(*_: object) -> ElfFacts:
        raise AssertionError("read again")

    monkeypatch.setattr(elf, "read", refuse)
    assert _read(files, cache) == first == {path: first[path] for path in files[:4]}


def test_the_cache_knows_contents_not_names(put: Put, make: Make, tmp_path: Path) -> None:
    one, two = (str(put(name, _large(make(soname="s").build()))) for name in ("one", "two"))
    _read([one, two], tmp_path / "cache")
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 1
    Path(one).write_bytes(_large(make(soname="other").build()))
    facts = _read([one], tmp_path / "cache")[one]
    assert isinstance(facts, ElfFacts)
    assert facts.soname == "other"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"damaged": false}', '{"damaged": false, "bits": "x"}'])
def test_a_cache_that_was_damaged_is_not_believed(files: list[str], tmp_path: Path, content: str) -> None:
    cache = tmp_path / "cache"
    first = _read(files, cache)
    for kept in cache.rglob("*.json"):
        kept.write_text(content, encoding="utf-8")
    assert _read(files, cache) == first
    assert all(json.loads(kept.read_bytes())["damaged"] in (True, False) for kept in cache.rglob("*.json"))


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(files: list[str], tmp_path: Path) -> None:
    place = tmp_path / "cache"
    place.write_text("a file where the folder should be")
    assert _read(files, place) == _read(files)


def _deadly(path: Path, facts: ElfFacts) -> ElfFacts:
    if path.name == "b":
        os._exit(11)
    return facts


def test_a_file_that_ends_its_reader_is_damaged_and_the_others_are_read(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(reading, "READERS", (*READERS, _deadly))
    found = _read(files, None, 2)
    assert {Path(path).name for path, facts in found.items() if isinstance(facts, Damaged)} == {"b", "d"}
    assert found[files[1]] == Damaged("reading it ended the reader")


def _refusing(path: Path, facts: ElfFacts) -> ElfFacts:
    raise PermissionError(13, "Permission denied", str(path))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_cannot_be_read_is_bad_input(
    files: list[str], monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(reading, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(reading, "READERS", (_refusing,))
    with pytest.raises(BadInputError) as caught:
        _read(files, None, workers)
    assert caught.value.key == "file.unreadable"


def test_an_audit_with_and_without_cache_says_the_same(
    files: list[str], tmp_path: Path, kylin: TargetProfile
) -> None:
    paths = [Path(path) for path in files]
    without = audit(paths, kylin)
    assert audit(paths, kylin, cache=tmp_path / "cache") == without
    assert audit(paths, kylin, cache=tmp_path / "cache") == without


def test_the_version_of_the_rules_is_of_the_sources() -> None:
    assert len(facts_cache._version()) == 16
    assert facts_cache._version() == facts_cache._version()


def _aged(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 1000)
    os.utime(path, (time.time() - days * 86400,) * 2)
    return path


def test_the_cache_forgets_what_is_old_and_what_killed_runs_left(tmp_path: Path, files: list[str]) -> None:
    _read(files, tmp_path)
    old = _aged(tmp_path / "earlier" / "0.json", facts_cache.MOST_DAYS + 1)
    cut, busy = _aged(tmp_path / "other" / ".cut", 0.5), _aged(tmp_path / "other" / ".busy", 0)
    foreign = _aged(tmp_path / "other" / "not-ours", 1000)
    _read(files, tmp_path)
    assert not old.parent.exists()
    assert (cut.exists(), busy.exists(), foreign.exists()) == (False, True, True)
    assert len(list(tmp_path.rglob("*.json"))) == 4


def test_the_cache_keeps_the_last_used_within_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [_aged(tmp_path / "r" / f"{day}.json", day) for day in range(5)]
    monkeypatch.setattr(facts_cache, "MOST_BYTES", 3500)
    facts_cache.prune(tmp_path)
    assert [path.exists() for path in kept] == [True, True, True, False, False]


def test_what_the_cache_gives_is_young_again(files: list[str], tmp_path: Path) -> None:
    _read(files, tmp_path)
    for path in tmp_path.rglob("*.json"):
        os.utime(path, (0, 0))
    _read(files, tmp_path)
    assert len(list(tmp_path.rglob("*.json"))) == 4


def test_runs_that_remove_one_anothers_files_read_again(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_cache, "MOST_BYTES", 0)
    expected = _read(files)
    done: list[bool] = []
    threads = [threading.Thread(target=lambda: done.append(_read(files, tmp_path) == expected)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [True] * 4
