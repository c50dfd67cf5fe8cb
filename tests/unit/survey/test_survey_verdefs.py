"""Version definitions of libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.machines import ARM32, X86_64, library, write

from sampan.spec.target import LibcFacts
from sampan.survey import libc, verdefs

GCC_7 = [
    "GLIBCXX_3.4",
    "GLIBCXX_3.4.9",
    "GLIBCXX_3.4.24",
    "GLIBCXX_LDBL_3.4",
    "CXXABI_1.3",
    "CXXABI_1.3.11",
    "CXXABI_TM_1",
]


@pytest.mark.parametrize(("bits", "order"), [(64, "<"), (32, "<"), (64, ">"), (32, ">")])
def test_all_names_but_the_files_own_are_read(bits: int, order: str) -> None:
    assert verdefs.exported(library(GCC_7, bits=bits, order=order)) == tuple(GCC_7)


def test_versions_are_compared_as_numbers_and_odd_names_left_out() -> None:
    names = tuple(GCC_7)
    assert verdefs.highest(names, "GLIBCXX") == "3.4.24"
    assert verdefs.highest(names, "CXXABI") == "1.3.11"
    assert verdefs.highest(("GLIBC_2.9", "GLIBC_2.28", "GLIBC_PRIVATE"), "GLIBC") == "2.28"
    assert verdefs.highest(names, "GLIBC") is None


def test_a_library_without_definitions_exports_none() -> None:
    image = bytearray(library([]))
    kind = image.index((0x6FFFFFFD).to_bytes(4, "little"))
    image[kind : kind + 4] = (1).to_bytes(4, "little")
    assert verdefs.exported(bytes(image)) == ()


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"#!/bin/sh\n" + bytes(64), library(GCC_7)[:-100]])
def test_a_damaged_file_is_refused(image: bytes) -> None:
    with pytest.raises(ValueError, match=r"ELF|early"):
        verdefs.exported(image)


def test_the_libraries_of_the_userlands_own_kind_count(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "usr/lib/aarch64-linux-gnu/libc.so.6": library(["GLIBC_2.36"], machine=X86_64),
        "lib64/libc.so.6": library(["GLIBC_2.17", "GLIBC_2.28"]),
        "lib/libc.so.6": library(["GLIBC_2.99"], machine=ARM32, bits=32),
        "usr/lib64/libstdc++.so.6": library(GCC_7),
    }
    assert libc.facts(write(tmp_path, files), "aarch64") == LibcFacts("2.28", "3.4.24", "1.3.11")


def test_a_machine_without_libraries_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"lib64/libc.so.6": "INPUT(-lc)"})
    assert libc.facts(tmp_path, "aarch64") == LibcFacts()
