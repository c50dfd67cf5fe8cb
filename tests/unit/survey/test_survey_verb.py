"""``sampan survey`` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fakes.surveys import make_block
from typer.testing import CliRunner, Result

from sampan.cli import output
from sampan.cli.main import build_app
from sampan.errors import ExitCode
from sampan.survey import script

BLOCK = make_block("ab=0201b700;pg=65536;k=4.19.90;oi=kylin;on=Kylin;hw=8ff;ci=0x70;cp=0x663;")


@pytest.fixture(autouse=True)
def people(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--json`` of one call does not stay for the next; tables are wide."""
    output.use_json(False)
    monkeypatch.setenv("COLUMNS", "200")


def sampan(*words: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(build_app(), ["survey", *words], input=stdin)


def test_the_script_is_printed_as_it_is() -> None:
    assert sampan("--script").output == script.text()


def test_a_pasted_block_becomes_a_profile(tmp_path: Path) -> None:
    done = sampan("--read", "-", "--out", str(tmp_path / "far.json"), stdin=BLOCK.replace("\n", "\r\n  "))
    assert done.exit_code == ExitCode.OK
    assert "4.19.90" in done.output
    saved = json.loads((tmp_path / "far.json").read_text())
    assert (saved["name"], saved["page_size"], saved["memory_bytes"]) == ("pasted", 65536, None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_that_an_editor_saved(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "d2000.txt"
    path.write_bytes(f"粘贴：\n{BLOCK}".encode(encoding))
    told = json.loads(sampan("--read", str(path), "--json").output)
    assert (told["name"], told["arch"]) == ("d2000", "aarch64")


def test_a_damaged_block_writes_nothing_and_names_the_line(tmp_path: Path) -> None:
    path, out = tmp_path / "bad.txt", tmp_path / "out.json"
    path.write_text(BLOCK.replace("kylin", "kyiin"))
    done = sampan("--read", str(path), "--out", str(out), "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["key"]) == (ExitCode.BAD_INPUT, "survey.block-damaged")
    assert "@02" in told["message"]
    assert not out.exists()


@pytest.mark.parametrize(("name", "key"), [("none.txt", "file.missing"), ("", "file.unreadable")])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, key: str) -> None:
    done = sampan("--read", str(tmp_path / name), "--json")
    assert (done.exit_code, json.loads(done.stdout)["key"]) == (ExitCode.BAD_INPUT, key)


def test_the_difference_of_a_name_and_a_file(tmp_path: Path) -> None:
    out = tmp_path / "far.json"
    sampan("--read", "-", "--out", str(out), stdin=BLOCK)
    told = json.loads(sampan("--diff", "kylin-v10-phytium-d2000", str(out), "--json").output)
    facts = {one["fact"]: (one["a"], one["b"]) for one in told["differences"]}
    assert told["schema"] == "sampan/target-diff/1"
    assert facts["os.kernel"] == (None, "4.19.90")
    assert "page_size" not in facts
    output.use_json(False)
    assert "os.kernel" in sampan("--diff", "kylin-v10-phytium-d2000", str(out)).output
    assert sampan("--diff", str(out), str(out)).output.count("\n") == 1


def test_modes_exclude_one_another() -> None:
    done = sampan("--script", "--list", "--json")
    assert (done.exit_code, json.loads(done.stdout)["key"]) == (ExitCode.USAGE, "survey.one-of")
