"""A name of an architecture that is not ours is a slip of the pen, and the right one is said."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sampan.cli import entry, output
from sampan.cli.main import build_app
from sampan.errors import ExitCode
from sampan.spec import arch
from sampan.survey.resolve import closest

NAMES = {
    "arm64": "aarch64",
    "ARM64": "aarch64",
    "aarch46": "aarch64",
    "linux/arm64": "aarch64",
    "amd64": "x86_64",
    "x64": "x86_64",
    "x86-64": "x86_64",
    "X86_64": "x86_64",
    "loong64": "loongarch64",
}


@pytest.fixture(autouse=True)
def people() -> None:
    output.use_json(False)


@pytest.mark.parametrize(("word", "meant"), NAMES.items())
def test_the_runtime_of_another_name(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = entry.run(build_app(), ["runtime", word, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["key"]) == (ExitCode.USAGE, "cli.arch")
    assert f": {meant}." in told["message"]


@pytest.mark.parametrize(
    "verb", [["survey"], ["plan", "--weights", "w.gguf", "--target"], ["survey", "--diff", "hygon"]]
)
@pytest.mark.parametrize(("word", "meant"), [("arm64", "generic-aarch64"), ("amd64", "generic-x86-64")])
def test_a_target_of_an_architecture_s_name(verb: list[str], word: str, meant: str) -> None:
    done = CliRunner().invoke(build_app(), [*verb, word])
    assert (done.exit_code, f"Closest: {meant}." in done.output) == (ExitCode.USAGE, True)


def test_what_is_near_nothing() -> None:
    assert arch.meant("sparc") is None
    assert closest("sparc")
    assert "kylin-v10-sp1-kunpeng920" in closest("kylin-v10")
