"""Where the command line runs, and how wrong words end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sampan import i18n
from sampan.cli import entry, output
from sampan.cli.main import build_app


@pytest.fixture(autouse=True)
def _text_again() -> Iterator[None]:
    yield
    output.use_json(False)
    i18n.use("en")


@pytest.fixture
def on_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle's own sampan: the launcher's variable, and none of the workshop's libraries."""
    monkeypatch.setenv("SAMPAN_BUNDLE", "/opt/bundle")
    monkeypatch.setattr(entry, "find_spec", lambda _name: None)


def run(*words: str) -> int:
    """The exit code, however the command ends."""
    try:
        return entry.run(build_app(), words)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.usefixtures("on_target")
def test_a_bundle_offers_only_what_works_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    said = capsys.readouterr().out
    assert "Usage: ./sampan " in said
    assert "./sampan status" in said
    for verb in ("survey", "doctor", "serve", "status", "selftest", "install"):
        assert f" {verb} " in said
    for word in (" ship ", " wheelhouse ", "Workshop", "--install-completion"):
        assert word not in said


@pytest.mark.usefixtures("on_target")
@pytest.mark.parametrize(("language", "part"), [("en", "belongs to the workshop"), ("zh", "工作间")])
@pytest.mark.parametrize("verb", ["ship", "pack", "audit"])
def test_a_verb_of_the_workshop_is_sent_there(
    verb: str, language: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    i18n.use(language)
    assert run(verb, "--help") == 2
    assert part in capsys.readouterr().err


@pytest.mark.usefixtures("on_target")
def test_a_verb_of_the_workshop_is_an_error_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ship", "--json") == 2
    assert json.loads(capsys.readouterr().out)["key"] == "cli.workshop-verb"


def test_a_workshop_that_runs_in_a_bundles_environment_keeps_its_verbs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SAMPAN_BUNDLE", "/opt/bundle")
    assert run("--help") == 0
    said = capsys.readouterr().out
    assert "Usage: sampan " in said
    assert " ship " in said


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("ship", "--json"), "--weights"),
        (("plan", "--json", "--no-such"), "--no-such"),
        (("no-such-verb", "--json"), "no-such-verb"),
        (("ship", "--json", "--cores", "many"), "many"),
    ],
)
def test_wrong_words_beside_json_are_one_document(
    words: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["schema"], document["exit_code"]) == ("sampan/error/1", 2)
    assert part in document["message"]
    assert "--help" in document["hint"]
    assert said.err == ""


def test_help_beside_json_is_still_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ship", "--json", "--help") == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize("lang", ["fr", "english"])
def test_an_unknown_language_is_refused_with_the_known_ones(lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--lang", lang, "survey", "--list") == 2
    assert "en, zh" in capsys.readouterr().err


@pytest.mark.parametrize("lang", ["en", "zh", "zh_CN.UTF-8", "en-GB"])
def test_a_known_language_is_taken(lang: str) -> None:
    assert run("--lang", lang, "survey", "--list") == 0


def test_an_unset_shell_variable_is_not_the_current_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("audit", ""), ("audit", "--target", "hygon", " "), ("",), ("doctor", "")):
        assert run(*words) == 2, words
        assert "empty" in capsys.readouterr().err
