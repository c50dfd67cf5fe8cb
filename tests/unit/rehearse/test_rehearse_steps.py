from __future__ import annotations

import pytest
from tests.unit.rehearse.outputs import good, lines, step

from sampan.rehearse.steps import Line, emulator_signal, machine, parse


def test_output_is_split_into_steps() -> None:
    record = parse(lines(good()))
    assert [each.name for each in record.steps] == list(good())
    assert (record.made, record.done, record.loose) == (True, True, ())
    install = record.step("install")
    assert install is not None
    assert (install.command, install.output, install.result) == ("./install.sh", ("Checking", "✓ Copied"), "0")
    assert install.seconds == 4.0
    assert record.step("nothing") is None


def test_a_step_that_never_ended_has_no_result() -> None:
    record = parse(lines({"install": ["@begin install ./install.sh", "Checking"]}, done=False))
    (only,) = record.steps
    assert (only.result, only.ok, only.output) == ("", False, ("Checking",))
    assert not record.done


def test_what_a_command_prints_cannot_end_another_step() -> None:
    record = parse(
        lines({"install": ["@begin install x", "@end serve ready", "@made", "@end install 3"]}, made=False)
    )
    (only,) = record.steps
    assert only.result == "3"
    assert not record.made


def test_complaints_before_any_step_are_kept() -> None:
    record = parse([Line(0.0, "@pid 1"), Line(0.1, "mount: permission denied")])
    assert record.loose == ("mount: permission denied",)
    assert not record.made


@pytest.mark.parametrize(
    ("result", "expected"), [("132", 4), ("137", 9), ("128", None), ("1", None), ("ready", None)]
)
def test_the_shells_exit_code_tells_the_signal(result: str, expected: int | None) -> None:
    (only,) = parse(lines({"x": step("x", result=result)})).steps
    assert only.signal == expected


def test_the_sandbox_is_read_from_inside() -> None:
    found = parse(lines(good())).step("machine")
    assert found is not None
    seen = machine(found)
    assert (seen.arch, seen.user, seen.no_new_privs) == ("aarch64", "1000", True)
    assert (seen.page_size, seen.hwcap, seen.interfaces) == (65536, 0x119FFB, ("lo",))
    assert seen.root == ("bin", "dev", "home", "media", "proc", "steps.sh", "tmp", "usr")


def test_a_sandbox_that_told_nothing_is_empty() -> None:
    found = parse(lines({"machine": step("machine")})).step("machine")
    assert found is not None
    seen = machine(found)
    assert (seen.arch, seen.user, seen.page_size, seen.hwcap, seen.no_new_privs) == ("", "", 0, 0, False)


def test_the_emulators_word_for_a_fatal_signal() -> None:
    assert emulator_signal(["x", "qemu: uncaught target signal 4 (Illegal instruction) - core dumped"]) == 4
    assert emulator_signal(["nothing"]) is None
