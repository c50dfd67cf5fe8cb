"""The message catalogue: both languages, the same placeholders, a hint for every error."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import sampan
from sampan import errors, i18n

SOURCE = Path(sampan.__file__).parent


def _placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("key", sorted(i18n.catalogue()))
def test_both_languages_say_the_same(key: str) -> None:
    entry = i18n.catalogue()[key]
    assert set(entry) == {"en", "zh"}
    assert entry["en"].strip()
    assert entry["zh"].strip()
    assert _placeholders(entry["en"]) == _placeholders(entry["zh"])


def test_every_error_has_a_hint() -> None:
    keys = set(i18n.catalogue())
    lonely = [k for k in keys if k.startswith("error.") and "hint." + k.removeprefix("error.") not in keys]
    assert lonely == []


def _raised_keys() -> Iterator[tuple[str, str, set[str]]]:
    """(file, key, names of the values) of every ``SomeError("key", name=…)`` in the source."""
    classes = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            first = node.args[0] if node.args else None
            if node.func.id in classes and isinstance(first, ast.Constant) and isinstance(first.value, str):
                names = {keyword.arg for keyword in node.keywords if keyword.arg}
                yield path.name, first.value, names


def test_every_raised_error_is_in_the_catalogue_with_its_values() -> None:
    faults = []
    for file, key, names in _raised_keys():
        entry = i18n.catalogue().get(f"error.{key}")
        if entry is None:
            faults.append(f"{file}: {key} is not in the catalogue")
            continue
        hint = i18n.catalogue().get(f"hint.{key}", {"en": ""})
        unknown = (_placeholders(entry["en"]) | _placeholders(hint["en"])) - names
        if unknown and names:
            faults.append(f"{file}: {key} lacks {sorted(unknown)}")
    assert faults == []


def test_no_message_advises_replacing_glibc_or_a_global_library_path() -> None:
    for key, entry in i18n.catalogue().items():
        for text in entry.values():
            lowered = text.lower()
            assert "upgrade glibc" not in lowered, key
            assert "升级 glibc" not in lowered, key
            assert "export ld_library_path" not in lowered, key


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        (["--lang", "zh"], {"LANG": "en_US.UTF-8"}, "zh"),
        (["--lang=en"], {"LANG": "zh_CN.UTF-8"}, "en"),
        ([], {"LANG": "zh_CN.GB18030"}, "zh"),
        ([], {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ([], {"SAMPAN_LANG": "zh", "LC_ALL": "C"}, "zh"),
        ([], {}, "en"),
    ],
)
def test_language_follows_flag_then_posix_order(argv: list[str], environ: dict[str, str], expected: str) -> None:
    assert i18n.choose_language(argv, environ) == expected


def test_an_unknown_key_still_says_something() -> None:
    assert "no.such.key" in i18n.text("no.such.key", path="/x")
