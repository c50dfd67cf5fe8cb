"""In a bundle a hint names the command as it is typed there; what belongs to the workshop keeps its name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sampan import i18n


@pytest.fixture(autouse=True)
def in_a_bundle() -> Iterator[None]:
    i18n.use_program("./sampan", ("survey", "doctor"))
    yield
    i18n.use_program(i18n.PROGRAM, ())


@pytest.mark.parametrize(
    ("told", "here"),
    [
        ("`sampan survey --script` and `sampan ship`", "`./sampan survey --script` and `sampan ship`"),
        ("journalctl | sampan doctor -", "journalctl | ./sampan doctor -"),
        ("`./sampan survey`, /opt/x/sampan survey", "`./sampan survey`, /opt/x/sampan survey"),
        ("sampan surveys, sampan-doctor, my-sampan doctor", "sampan surveys, sampan-doctor, my-sampan doctor"),
    ],
)
def test_commands_that_work_here(told: str, here: str) -> None:
    assert i18n.typed_here(told) == here


def test_what_a_user_named_is_never_changed() -> None:
    told = i18n.text("error.file.missing", path="my sampan survey x")
    assert "my sampan survey x" in told
    assert "./sampan survey" in i18n.text("hint.survey.no-block")


def test_the_workshop_says_sampan() -> None:
    i18n.use_program(i18n.PROGRAM, ())
    assert "`sampan survey" in i18n.text("hint.survey.no-block")
    assert i18n.text("no.such.key", a=1) == "no.such.key {'a': 1}"
