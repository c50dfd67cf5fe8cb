"""Ten recorded machines: the script's block, read back, is what the direct survey finds there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.surveys import LARGEST, MACHINES, pretended, printed_block, run, shell

from sampan.survey import pasted
from sampan.survey.machine import survey_this

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("name", MACHINES)
def test_recorded_machines(tmp_path: Path, name: str) -> None:
    root = pretended(tmp_path, name)
    output = run(shell("dash"), root)
    assert len(printed_block(output).encode()) <= LARGEST
    read, direct = pasted.profile(output, name="this", where="-"), survey_this(root)
    shared = (
        "arch os page_size libc memory_bytes memory_limit_bytes cpu_quota systemd cgroup security swap_bytes init"
    )
    for fact in (*shared.split(), "gpus"):
        if fact != "page_size" or MACHINES[name]:
            assert getattr(read, fact) == getattr(direct, fact), fact
    assert replace(read.cpu, allowed=None) == direct.cpu
    assert (read.security.selinux, read.security.fapolicyd) == ("enforcing", "running")
    assert read.memory_limit_bytes == 8 << 30
