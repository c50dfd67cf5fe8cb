"""One message catalogue, two languages.

The catalogue is every ``data/messages/*.toml``: a table per key with ``en`` and ``zh``. Placeholders are
``str.format`` fields and must be the same in both languages (a unit test checks that).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LANGUAGES = ("en", "zh")
PROGRAM = "sampan"  # as the catalogue names it
_state = {"language": "en", "program": PROGRAM, "verbs": ""}


def choose_language(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """``--lang`` wins, then SAMPAN_LANG, then LC_ALL, LC_MESSAGES, LANG as POSIX orders them; else English."""
    for index, word in enumerate(argv):
        if word == "--lang" and index + 1 < len(argv):
            return _known(argv[index + 1])
        if word.startswith("--lang="):
            return _known(word.removeprefix("--lang="))
    for name in ("SAMPAN_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if environ.get(name):
            return _known(environ[name])
    return "en"


def _known(locale: str) -> str:
    return "zh" if locale.lower().startswith("zh") else "en"


def use(language: str) -> None:
    """Set the language of every later message."""
    _state["language"] = _known(language)


def use_program(program: str, verbs: Sequence[str]) -> None:
    """Set what the user types here before one of these verbs: ``./sampan`` in a bundle."""
    _state["program"], _state["verbs"] = program, "|".join(verbs)


def typed_here(told: str) -> str:
    """The text with each command that works here named as it is typed here; others belong to the workshop."""
    if _state["program"] == PROGRAM:
        return told
    return re.sub(rf"(?<![\w./<-]){PROGRAM} (?=(?:{_state['verbs']})\b)", f"{_state['program']} ", told)


def use_environment() -> None:
    """Set the language from this process's own words and environment."""
    use(choose_language(sys.argv[1:], os.environ))


def language() -> str:
    """The language in force: ``en`` or ``zh``."""
    return _state["language"]


@cache
def catalogue() -> dict[str, dict[str, str]]:
    """Every message: ``{"error.x": {"en": …, "zh": …}}``."""
    merged: dict[str, dict[str, str]] = {}
    folder = resources.files("sampan") / "data" / "messages"
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".toml"):
            merged.update(tomllib.loads(entry.read_text(encoding="utf-8")))
    return merged


def text(key: str, /, **values: object) -> str:
    """The message ``key`` in the language in force, its placeholders filled.

    An unknown key gives the key itself with its values: a missing translation must never hide an error.
    """
    return _filled(typed_here(_template(_state["language"], key)), key, values)


def text_in(language: str, key: str, /, **values: object) -> str:
    """The message ``key`` in a language of one's choice: for files that carry both."""
    return _filled(_template(language, key), key, values)


def _template(language: str, key: str) -> str:
    entry = catalogue().get(key)
    return entry[language] if entry else ""


def _filled(template: str, key: str, values: Mapping[str, object]) -> str:
    if template:
        return template.format(**values)
    return f"{key} {values}" if values else key
