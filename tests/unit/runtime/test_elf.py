"""Reading ELF files, on the compiled modules of this very environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.runtime.conftest import compiled_module

from sampan.runtime.elf import highest, read_elf


def test_needed_libraries_are_read() -> None:
    elf = read_elf(compiled_module())
    assert elf is not None
    assert "libc.so.6" in elf.needed
    assert elf.versions == ()


def test_what_is_no_elf_gives_nothing(tmp_path: Path) -> None:
    for data in (b"", b"text", b"\x7fELF", b"\x7fELF" + bytes(60)):
        path = tmp_path / "x"
        path.write_bytes(data)
        assert read_elf(path) is None


@pytest.mark.parametrize(
    ("versions", "prefix", "expected"),
    [
        (("GLIBC_2.9", "GLIBC_2.36", "GLIBC_2.4", "GLIBC_PRIVATE"), "GLIBC", "2.36"),
        (("GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "CXXABI_1.3"), "GLIBCXX", "3.4.30"),
        (("GLIBC_PRIVATE",), "GLIBC", None),
    ],
)
def test_versions_are_compared_as_numbers(versions: tuple[str, ...], prefix: str, expected: str | None) -> None:
    assert highest(versions, prefix) == expected
