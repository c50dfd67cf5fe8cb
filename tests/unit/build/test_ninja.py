"""Progress from ninja's output."""

from __future__ import annotations

import pytest

from sampan.build.ninja import Step, parse_step


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[3/206] Building CXX object src/CMakeFiles/llama.dir/llama.cpp.o", Step(3, 206, "llama.cpp")),
        ("[206/206] Linking CXX executable bin/llama-server", Step(206, 206, "llama-server")),
        ("[1/2] ", Step(1, 2, "")),
    ],
)
def test_a_step_tells_how_far_and_what(line: str, expected: Step) -> None:
    assert parse_step(line) == expected


@pytest.mark.parametrize(
    "line",
    ["", "ninja: no work to do.", "FAILED: [code=1] a.o", "a.cpp:3:1: error: [1/2] x", "-- Configuring done (0.9s)"],
)
def test_other_lines_are_no_steps(line: str) -> None:
    assert parse_step(line) is None
