"""The memory of the audit is bounded, whatever the size of a library."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration import large_elf

pytestmark = pytest.mark.integration

MIB = 1 << 20


def test_a_library_of_600_mb_takes_two_thirds_of_that_at_most(tmp_path: Path) -> None:
    """Two and a half million functions, as many as such a library has. The file's pages are given back."""
    spent = large_elf.audited(large_elf.write(tmp_path / "libx.so", 600 * MIB, 600 * MIB // 256), beside=600 * MIB)
    assert spent.own < 400 * MIB
    assert spent.files < 350 * MIB
    assert "isa.start" in spent.said


def test_a_file_that_is_all_symbols_takes_no_more_than_the_largest_library(tmp_path: Path) -> None:
    """Sixteen million functions are more than are taken, which is said."""
    spent = large_elf.audited(large_elf.write(tmp_path / "libx.so", 64 * MIB, 16 << 20))
    assert spent.own < 500 * MIB
    assert "isa.limits" in spent.said
