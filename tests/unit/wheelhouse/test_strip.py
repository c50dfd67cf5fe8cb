"""Stripping: the loader sees the same file; only what it never maps is gone."""

from __future__ import annotations

import ctypes
import importlib.util
import io
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.wheelhouse.strip import strip

HEADER = 64


def _module(name: str) -> bytes:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_bytes()


@pytest.fixture(scope="module")
def heavy() -> bytes:
    """A module that its wheel ships with debug sections."""
    data = _module("httptools.parser.url_parser")
    assert ELFFile(io.BytesIO(data)).get_section_by_name(".debug_info") is not None
    return data


def test_debug_sections_go_and_the_rest_stays(heavy: bytes) -> None:
    small = strip(heavy)
    assert len(small) < len(heavy) / 2
    before, after = ELFFile(io.BytesIO(heavy)), ELFFile(io.BytesIO(small))
    kept = {section.name: section.data() for section in after.iter_sections()}
    assert not any(name.startswith((".debug", ".symtab")) for name in kept)
    for section in before.iter_sections():
        if section["sh_flags"] & 2:
            assert kept[section.name] == section.data(), section.name
    assert kept.keys() - {section.name for section in before.iter_sections()} == set()


def test_every_segment_keeps_its_bytes_and_place(heavy: bytes) -> None:
    before, after = ELFFile(io.BytesIO(heavy)), ELFFile(io.BytesIO(strip(heavy)))
    pairs = list(zip(before.iter_segments(), after.iter_segments(), strict=True))
    assert pairs
    for old, new in pairs:
        assert dict(old.header) == dict(new.header)
        start = HEADER if old["p_offset"] == 0 else 0  # the file's own header says where the section table is
        assert old.data()[start:] == new.data()[start:]


def test_the_loader_still_takes_it(heavy: bytes, tmp_path: Path) -> None:
    path = tmp_path / "url_parser.so"
    path.write_bytes(strip(heavy))
    assert ctypes.CDLL(str(path)).PyInit_url_parser


def test_a_second_time_changes_nothing(heavy: bytes) -> None:
    once = strip(heavy)
    assert strip(once) == once


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x01\x01" + bytes(80), b"text" * 40])
def test_what_is_no_such_elf_stays_as_it_is(data: bytes) -> None:
    assert strip(data) == data


def test_a_file_without_a_section_table_stays_as_it_is(heavy: bytes) -> None:
    bare = bytearray(heavy)
    struct.pack_into("<Q", bare, 40, 0)
    struct.pack_into("<HHH", bare, 58, 0, 0, 0)
    assert strip(bytes(bare)) == bytes(bare)


@pytest.mark.parametrize("length", [20, 63, 64, 100, 4096, 100_000])
def test_a_file_cut_short_stays_as_it_is(heavy: bytes, length: int) -> None:
    assert strip(heavy[:length]) == heavy[:length]


@settings(max_examples=80, deadline=None)
@given(at=st.integers(16, 63), value=st.integers(0, 255), extent=st.sampled_from([4096, 400_000, 10**9]))
def test_damaged_headers_never_raise_nor_grow_the_file(at: int, value: int, extent: int) -> None:
    data = bytearray(_module("httptools.parser.url_parser")[:extent])
    data[at] = value
    assert len(strip(bytes(data))) <= len(data)
