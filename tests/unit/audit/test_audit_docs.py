"""The documents of the findings say what the data says, for every code that the audit can give.

``SAMPAN_UPDATE_GOLDEN=1`` writes them anew; review the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sampan import i18n
from sampan.audit import explain
from sampan.errors import ExitCode, UsageError

DOCS = Path(__file__).parents[3] / "docs"
FILES = {"en": "findings.md", "zh": "findings.zh-CN.md"}


@pytest.mark.parametrize("language", FILES)
def test_the_document_is_that_of_the_data(language: str) -> None:
    path = DOCS / FILES[language]
    text = path.read_text(encoding="utf-8")
    unknown = set(re.findall(r"^## ([a-z]+\.[a-z-]+)$", text, re.MULTILINE)) - set(explain.codes())
    assert unknown == set(), "write these into src/sampan/data/findings/, the document is generated from there"
    expected = re.split(r"\n(?=## [a-z]+\.[a-z-]+\n)", text)[0] + "\n" + explain.markdown(language)
    if os.environ.get("SAMPAN_UPDATE_GOLDEN") == "1":
        path.write_text(expected, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize(("language", "title"), [("en", "What the audit cannot see"), ("zh", "审计看不到什么")])
def test_the_document_says_what_the_audit_cannot_see(language: str, title: str) -> None:
    text = (DOCS / FILES[language]).read_text(encoding="utf-8")
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert section.count("\n- ") >= 8
    assert all(f"`{code}`" in section for code in ("isa.unguarded", "closure.dlopen", "closure.unstated"))


def test_every_message_is_explained_and_every_explanation_has_its_messages() -> None:
    keys = {key.removeprefix("finding.") for key in i18n.catalogue() if key.startswith("finding.")}
    assert {key for key in keys if not key.endswith(".fix")} == set(explain.codes())
    assert {f"{code}.fix" for code in explain.codes()} <= keys


@pytest.mark.parametrize("code", explain.codes())
def test_an_explanation_has_cause_proof_and_fix_in_both_languages(code: str) -> None:
    for language in i18n.LANGUAGES:
        said = explain.explain(code, language)
        assert all(len(part) > 3 for part in (said.cause, said.proof, said.fix))
        assert "`" in said.proof, "a proof is a command"
        assert not re.search(r"^#", f"{said.cause}\n{said.proof}\n{said.fix}", re.MULTILINE)


def test_an_unknown_code_is_told_its_neighbours() -> None:
    with pytest.raises(UsageError) as caught:
        explain.explain("glibc.celing", "en")
    assert caught.value.exit_code == ExitCode.USAGE
    assert "glibc.ceiling" in caught.value.hint


def test_each_code_is_tried_on_a_real_file() -> None:
    """Public, or made by a real tool."""
    tests = Path(__file__).parents[2]
    files = [*tests.glob("integration/test_audit_*.py"), tests / "data/audit/real_files.toml"]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert {code for code in explain.codes() if not re.search(rf"\b{re.escape(code)}\b", text)} == set()
