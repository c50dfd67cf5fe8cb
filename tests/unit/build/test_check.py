"""What a finished executable must be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.build.conftest import MACHINES, elf

from sampan.build.check import check_static, faults
from sampan.errors import BuildError, ExitCode

LOAD, DYNAMIC, INTERP = 1, 2, 3
ROOMY = 1 << 20


def _file(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "llama-server"
    path.write_bytes(data)
    return path


def test_a_static_aligned_executable_is_fit(tmp_path: Path) -> None:
    check_static(_file(tmp_path, elf()), "aarch64", max_bytes=ROOMY)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (elf(MACHINES["x86_64"]), "EM_X86_64"),
        (elf(segments=[(LOAD, 0x10000), (INTERP, 1)]), "PT_INTERP"),
        (elf(segments=[(LOAD, 0x10000), (DYNAMIC, 8)]), "PT_DYNAMIC"),
        (elf(segments=[(LOAD, 0x1000)]), "0x1000"),
        (b"#!/bin/sh\n", "not a readable ELF"),
        (elf()[:70], "not a readable ELF"),
        (b"", "not a readable ELF"),
    ],
    ids=["machine", "interpreter", "dynamic", "alignment", "script", "truncated", "empty"],
)
def test_what_a_bare_kernel_could_not_run_is_named(data: bytes, expected: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        check_static(_file(tmp_path, data), "aarch64", max_bytes=ROOMY)
    assert caught.value.key == "build.unfit"
    assert caught.value.exit_code == ExitCode.BUILD_FAILED
    assert expected in caught.value.message


def test_an_executable_over_its_budget_is_refused(tmp_path: Path) -> None:
    assert faults(_file(tmp_path, elf()), "aarch64", max_bytes=100) == ["120 bytes, more than 100"]


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    path = _file(tmp_path, elf(MACHINES["x86_64"], [(LOAD, 0x1000), (INTERP, 1)]))
    assert len(faults(path, "aarch64", max_bytes=10)) == 4
