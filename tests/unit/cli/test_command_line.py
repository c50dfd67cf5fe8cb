"""The command line as a user meets it: help, languages, errors and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes.typed import typed

from sampan.cli import sizes
from sampan.errors import UsageError

VERBS = ("ship", "survey", "weights", "plan", "build", "runtime", "wheelhouse", "bundle", "audit", "rehearse", "pack")
TARGET_VERBS = ("serve", "selftest", "install", "status", "start", "stop", "uninstall", "doctor")


def sampan(*words: str, cache: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the real command with an empty cache and no terminal."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SAMPAN_", "LC_", "LANG"))}
    return subprocess.run(
        [sys.executable, "-m", "sampan", *words],
        env={**clean, "SAMPAN_CACHE": str(cache), "COLUMNS": "200", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_every_verb_in_the_users_language(tmp_path: Path) -> None:
    english = sampan("--help", cache=tmp_path)
    chinese = sampan("--help", cache=tmp_path, LANG="zh_CN.UTF-8")
    assert english.returncode == chinese.returncode == 0
    for verb in (*VERBS, *TARGET_VERBS):
        assert f" {verb} " in english.stdout
        assert f" {verb} " in chinese.stdout
    assert "Workshop" in english.stdout
    assert "目标机" in chinese.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_workshop_verb_shows_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(verb, "--help") == 0
    assert f"sampan {verb} " in capsys.readouterr().out.replace(f"Usage: sampan {verb}", "")


def test_a_misspelt_target_is_answered_with_the_closest_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("survey", "kylin-v10-sp3-kunpen920") == 2
    said = capsys.readouterr().err
    assert "kylin-v10-sp3-kunpeng920" in said
    assert "Traceback" not in said


def test_errors_speak_chinese_and_json(tmp_path: Path) -> None:
    done = sampan("--lang", "zh", "weights", str(tmp_path / "none.gguf"), "--json", cache=tmp_path)
    said = json.loads(done.stdout)
    assert done.returncode == said["exit_code"] == 3
    assert said["schema"] == "sampan/error/1"
    assert str(tmp_path / "none.gguf") in said["message"]
    assert any("\u4e00" <= letter <= "\u9fff" for letter in said["hint"])
    assert done.stderr == ""


def test_a_failing_stage_of_ship_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("ship", "-w", str(tmp_path / "none.gguf"), "-t", "hygon", "--out", str(tmp_path / "o")) == 3
    assert "weights" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_a_wrong_option_is_a_usage_error() -> None:
    assert typed("ship", "--no-such-option") == 2
    assert typed("no-such-verb") == 2


@pytest.mark.parametrize("verb", ["serve", "selftest", "install"])
def test_target_verbs_say_where_they_belong(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(verb) == 2
    assert "./sampan" in capsys.readouterr().err


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    first = sampan("survey", "kylin-v10-phytium-d2000", "--out", str(path), "--json", cache=tmp_path)
    again = sampan("survey", str(path), "--json", cache=tmp_path)
    assert first.returncode == again.returncode == 0
    assert json.loads(first.stdout) == json.loads(again.stdout) == json.loads(path.read_text())


def test_a_closed_pipe_is_no_fault(tmp_path: Path) -> None:
    line = f"{sys.executable} -m sampan survey --list | true"
    done = subprocess.run(
        ["sh", "-c", line],
        env={**os.environ, "SAMPAN_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "count"),
    [("14G", 14 << 30), ("512M", 512 << 20), ("1.5GiB", 3 << 29), ("100", 100), ("2 k", 2048), ("1TB", 1 << 40)],
)
def test_sizes_are_read_as_people_write_them(text: str, count: int) -> None:
    assert sizes.parse_size(text) == count


@pytest.mark.parametrize("text", ["", "G", "-1G", "0", "1X", "1e9", "１４G x"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        sizes.parse_size(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (158_000_000, "158 MB"), (2 * 10**12, "2000 GB")],
)
def test_sizes_are_shown_short(count: int, text: str) -> None:
    assert sizes.show_size(count) == text
