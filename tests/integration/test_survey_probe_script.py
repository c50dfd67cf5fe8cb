"""The survey script with a stand-in for the probe: where it writes, what it says, what it leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.machines import AARCH64, X86_64, library, write
from tests.fakes.surveys import SHELLS, pretended, run, shell

from sampan.survey import pasted, script

pytestmark = pytest.mark.integration

# A stand-in for the program: a script of our own, so that no compiler is needed here.
STAND_IN = b"#!/bin/sh\necho 'sampan-probe 1 x'\necho 'atomics illegal'\necho 'fp ran'\necho 'sve2 ran'\n"
PROGRAMS = script.Programs(
    {"aarch64": STAND_IN, "x86_64": STAND_IN}, {"aarch64": "zig a", "x86_64": "zig b"}, "zig 1"
)


def probing(monkeypatch: pytest.MonkeyPatch) -> str:
    told = script.with_probe(PROGRAMS)
    monkeypatch.setattr(script, "text", lambda: told)
    return told


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_runs_it_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    root, folder = pretended(tmp_path / "root", "kunpeng-920"), tmp_path / "tmp"
    folder.mkdir()
    write(root, {"proc/self/exe": library([], machine=AARCH64)})
    probing(monkeypatch)
    output = run(shell(name), root, env={"TMPDIR": str(folder)})
    assert list(folder.iterdir()) == []
    assert "CLAIMED, BUT CANNOT BE EXECUTED 内核声明但无法执行: atomics\n" in output
    assert "Executed, but not claimed 可执行但未声明: sve2\n" in output
    assert "pr=1,irr;" in "".join(line.split()[1] for line in output.splitlines() if line.startswith("@"))


def test_without_a_folder_it_is_said_to_be_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = probing(monkeypatch)
    places = told.index('for place in "${TMPDIR'), told.index("; do\n        case $told in")
    monkeypatch.setattr(script, "text", lambda: told[: places[0]] + f"for place in {tmp_path}/no" + told[places[1] :])
    output = run(shell("dash"), pretended(tmp_path / "root", "kunpeng-920"))
    assert "Probe 指令探测: not done 未执行: no folder where a program may be written and run" in output
    assert pasted.profile(output, name="far", where="-").extra == {"survey_probe": "not done"}


def test_no_program_for_that_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = pretended(tmp_path, "kunpeng-920")
    write(root, {"proc/self/exe": library([], machine=243)})
    probing(monkeypatch)
    assert "not done 未执行: no program for this architecture" in run(shell("dash"), root)


def test_a_folder_of_that_name_that_is_not_ours_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = probing(monkeypatch)
    monkeypatch.setattr(script, "text", lambda: told.replace("sampan-probe.$$", "sampan-probe.x"))
    mine = write(tmp_path / "tmp", {"sampan-probe.x/precious": "mine"})
    write(tmp_path / "root", {"proc/self/exe": library([], machine=X86_64)})
    run(shell("dash"), tmp_path / "root", env={"TMPDIR": str(mine)})
    assert (mine / "sampan-probe.x/precious").read_text() == "mine"
