"""Files that are gone through window by window: nothing that stands across an edge is missed."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampan.audit import windows


@pytest.fixture
def data(tmp_path: Path) -> Iterator[mmap.mmap]:
    """Ten pages, with a word across the second edge."""
    content = bytearray(10 * mmap.PAGESIZE)
    content[2 * mmap.PAGESIZE - 2 : 2 * mmap.PAGESIZE + 2] = b"word"
    content[-4:] = b"last"
    (tmp_path / "f").write_bytes(content)
    with (tmp_path / "f").open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield mapped


@pytest.mark.parametrize("needle", [b"word", b"wor", b"d", b"last", b"t", b"none", b"lastly"])
@pytest.mark.parametrize("start", [0, 1, 2 * mmap.PAGESIZE - 2, 2 * mmap.PAGESIZE - 1, 10 * mmap.PAGESIZE])
def test_it_finds_what_the_whole_map_would(
    data: mmap.mmap, needle: bytes, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "WINDOW", mmap.PAGESIZE)
    assert windows.find(data, needle, start) == data.find(needle, start)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 2), (0, 1 << 40), (5000, 9000), (1 << 40, 1 << 41)])
def test_what_was_forgotten_can_be_read_again(data: mmap.mmap, low: int, high: int) -> None:
    before = bytes(data)
    windows.forget(data, low, high)
    assert bytes(data) == before
