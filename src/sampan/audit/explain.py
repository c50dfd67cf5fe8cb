"""Every finding explained: cause, proof command, fix. The one source is ``data/findings/*.toml``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sampan import i18n
from sampan.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Explanation:
    """Markdown, in one language."""

    code: str
    cause: str
    proof: str
    fix: str


@cache
def _all() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    merged: dict[str, Mapping[str, Mapping[str, str]]] = {}
    folder = resources.files("sampan") / "data" / "findings"
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".toml"):
            merged.update(tomllib.loads(entry.read_text(encoding="utf-8")))
    return merged


def codes() -> tuple[str, ...]:
    """Every code, in the documents' order."""
    return tuple(_all())


def explain(code: str, language: str) -> Explanation:
    """What is to be said of one code, in ``en`` or ``zh``. Raises UsageError ``audit.code``."""
    entry = _all().get(code)
    if entry is None:
        near = [known for known in codes() if known.partition(".")[0] == code.partition(".")[0]]
        raise UsageError("audit.code", code=code, known=", ".join(near or codes()))
    said = entry[language]
    return Explanation(code, *(said[part].strip() for part in ("cause", "proof", "fix")))


def markdown(language: str) -> str:
    """The sections of the document in that language."""
    heads = [i18n.catalogue()[f"audit.explain.{part}"][language] for part in ("cause", "proof", "fix")]
    sections = []
    for code in codes():
        said = explain(code, language)
        parts = zip(heads, (said.cause, said.proof, said.fix), strict=True)
        sections.append("\n\n".join([f"## {code}", *(f"**{head}** {text}" for head, text in parts)]) + "\n")
    return "\n".join(sections)
