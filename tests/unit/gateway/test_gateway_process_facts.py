"""Memory as the kernel counts it, whatever page size this program believes in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sampan.gateway.process_facts import resident_bytes


def test_resident_memory_does_not_depend_on_the_page_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "status").write_text("Name:\tllama-server\nVmRSS:\t    2048 kB\nThreads:\t2\n")
    for size in (4096, 65536):
        monkeypatch.setattr(os, "sysconf", lambda _name, size=size: size)
        assert resident_bytes(tmp_path) == 2 << 20


def test_this_process_has_a_sensible_size() -> None:
    assert 1 << 20 < (resident_bytes(Path("/proc/self")) or 0) < 1 << 34


def test_a_process_that_is_gone_has_none(tmp_path: Path) -> None:
    assert resident_bytes(tmp_path) is None
    (tmp_path / "status").write_text("Name:\tzombie\n")
    assert resident_bytes(tmp_path) is None
