"""The knowledge is data that keeps its own promises: schema, samples, safe patterns, both languages, pages."""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampan import i18n
from sampan.doctor import data, diagnose, knowledge, literals, patterns, schema
from sampan.doctor.conditions import Fact
from sampan.doctor.model import Case
from sampan.errors import BadInputError, ExitCode, UsageError

ROOT = Path(__file__).parents[3]
CASES = sorted(knowledge.cases().values(), key=lambda case: case.code)
EACH = pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])


def codes(text: str) -> dict[str, str]:
    return {one.code: one.role for one in diagnose.of_text(text, _facts_for(text)).findings}


def _facts_for(_: str) -> dict[str, Fact]:
    return {}


@EACH
def test_a_case_recognises_its_own_samples_and_not_its_counter_samples(case: Case) -> None:
    for text in case.yes:
        found = codes(text)
        assert case.code in found, text
        assert next(iter(found)) == case.code or found[case.code] != "cause", (text, found)
    for text in case.no:
        assert case.code not in codes(text), text


@EACH
def test_a_case_speaks_both_languages(case: Case) -> None:
    for texts in (case.texts, *(cause.texts for cause in case.causes)):
        for name, chinese in texts["zh"].items():
            assert re.search(r"[\u4e00-\u9fff]", chinese), name
            assert not re.search(r"[\u4e00-\u9fff]", texts["en"][name]), name


@EACH
def test_a_case_can_be_proved_and_names_its_source(case: Case) -> None:
    assert case.prove or all(cause.prove for cause in case.causes)
    assert case.source
    for source in case.source:
        assert "://" not in source


FORBIDDEN = (
    r"upgrade (?:the system's )?(?:g?libc|libstdc)",
    r"\b(?:export|set|echo) LD_LIBRARY_PATH",
    r"LD_LIBRARY_PATH=\S+.{0,20}(?:/etc/profile|bashrc|environment)",
    r"升级(?:系统的?)? ?(?:glibc|libc|libstdc)",
    r"setenforce 0",
    r"(?:^|[;.] )(?:chmod 777|chmod -R 777)",
    r"curl[^;]{0,40}\| ?(?:sudo )?(?:ba)?sh",
)


@EACH
def test_no_case_advises_what_harms_the_system(case: Case) -> None:
    """Only ``avoid`` may speak of such things, to warn."""
    advice = [case.prove, *(cause.prove for cause in case.causes)]
    for texts in (case.texts, *(cause.texts for cause in case.causes)):
        advice += [each.get("fix", "") for each in texts.values()] + [each.get("what", "") for each in texts.values()]
    for text in advice:
        for pattern in FORBIDDEN:
            assert not re.search(pattern, text, re.IGNORECASE), (case.code, text)


@EACH
def test_no_text_can_hang_a_pattern(case: Case) -> None:
    for pattern in (*case.match, *case.near, *case.not_near, *case.also):
        for text in hostile(pattern, case):
            started = time.process_time()
            patterns.compiled(pattern).search(text)
            assert time.process_time() - started < 0.25, pattern


def hostile(pattern: str, case: Case) -> Iterator[str]:
    """Long lines that almost match: parts of the samples and of the needed words, again and again."""
    pieces = {
        *literals.words(pattern),
        *(text[: len(text) // 2] for text in case.yes),
        *(text[:-1] for text in case.yes),
    }
    for piece in (*pieces, "/", "a", " ", "0", "a/", "x: "):
        yield (piece * (2000 // max(1, len(piece)) + 1))[:2000]
    yield (" ".join(sorted(pieces)) * 40)[:2000]


def test_the_index_stays_selective() -> None:
    """Short words would make every line a candidate: see bench/doctor_speed.py."""
    short = [anchor.word for anchor in knowledge.index() if len(anchor.word) < 5]
    assert len(short) <= 3, short


def parsed(toml: str) -> tuple[Case, ...]:
    return schema.read_cases(data.parse(f'schema = "{schema.SCHEMA}"\n{toml}'), "mine.toml", ("page_size",))


GOOD = """
[[case]]
code = "mine.first"
rank = 50
severity = "error"
confidence = "sure"
source = ["owner/name#1"]
prove = "true"
match = ['the (?P<part>\\w{1,20}) fell off']
yes = ["the wheel fell off"]
[case.en]
what = "The {part} fell off."
cause = "Rust."
fix = "Screw it on."
[case.zh]
what = "{part} 掉了。"
cause = "生锈。"
fix = "拧上。"
"""


def test_a_good_case_is_read() -> None:
    (case,) = parsed(GOOD)
    assert case.code == "mine.first"
    assert literals.words(case.match[0]) == {" fell off"}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('code = "mine.first"', 'code = "Mine"', "topic.some-name"),
        ('severity = "error"', 'severity = "bad"', "severity must be one of"),
        ('confidence = "sure"', "", "confidence must be one of"),
        ("rank = 50", "rank = 500", "rank is a number"),
        ('source = ["owner/name#1"]', "", "source is missing"),
        ("\\w{1,20}", "\\w+", "bounded by at most"),
        ("\\w{1,20}", "(?:\\w{1,20}){1,20}", "repeat inside of a repeat"),
        ("fell off'", "('", "not a regular expression"),
        ("the (?P<part>\\w{1,20}) fell off", "(?P<part>\\w{1,20}) up", "no fixed word"),
        ('yes = ["the wheel fell off"]', "", "yes must hold"),
        ('what = "The {part} fell off."', 'what = "The {thing} fell off."', "different placeholders"),
        ('cause = "生锈。"\n', "", "the languages have different texts"),
        ('prove = "true"', 'prove = "true"\nwhen = ["page_size 4096"]', "not a condition"),
        ('prove = "true"', 'prove = "true"\ncolour = "red"', "unknown keys ['colour']"),
        ('prove = "true"', 'prove = "true"\nderive = "magic"', "derive must be one of"),
        ('prove = "true"', 'prove = "true"\nhere = true', "here = true needs conditions"),
    ],
)
def test_a_wrong_case_is_refused_with_a_reason(old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    with pytest.raises(BadInputError) as caught:
        parsed(GOOD.replace(old, new))
    assert caught.value.key == "doctor.case"
    assert complaint in str(caught.value.values["detail"])
    assert caught.value.values["path"] == "mine.toml"
    assert caught.value.exit_code is ExitCode.BAD_INPUT


def test_both_languages_lacking_a_placeholder_that_nothing_fills_is_refused() -> None:
    with pytest.raises(BadInputError, match="nothing fills"):
        parsed(GOOD.replace("{part}", "{nothing}"))


def test_a_wrong_schema_is_refused() -> None:
    with pytest.raises(BadInputError, match="schema must be"):
        schema.read_cases({"schema": "other/9"}, "mine.toml", ())


def test_an_unknown_code_is_answered_with_the_closest_ones() -> None:
    with pytest.raises(UsageError) as caught:
        knowledge.case("loader.verson")
    assert "loader.version" in str(caught.value.values["known"])


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("doctor_pages", ROOT / "tools" / "doctor_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_those_of_the_data() -> None:
    tool = _tool()
    due: dict[str, str] = tool.pages()
    folder = ROOT / "docs" / "doctor"
    assert {path.name for path in folder.glob("*.md")} == {*due, *tool.HAND_WRITTEN}
    stale = [name for name, text in due.items() if (folder / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run tools/doctor_pages.py"
    assert i18n.language() == "en"


def test_the_guide_for_a_new_case_shows_one_that_is_valid() -> None:
    for name in ("adding-a-case.md", "adding-a-case.zh-CN.md"):
        text = (ROOT / "docs" / "doctor" / name).read_text(encoding="utf-8")
        blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        assert blocks, name
        assert parsed(blocks[0])
