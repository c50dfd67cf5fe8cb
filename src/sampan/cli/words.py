"""The command-line library's own words, in the user's language.

typer prints titles, "Usage" and the faults of the words in English. The catalogue's ``words.*`` hold each of those
texts and ours; an English message is recognised by its text and said again with the same values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from typer._click import Context, HelpFormatter  # typer carries its own click, and exports no base of its commands
from typer.core import TyperCommand, TyperGroup, TyperOption

from sampan import i18n

_TITLES = {
    "OPTIONS_PANEL_TITLE": "words.options",
    "ARGUMENTS_PANEL_TITLE": "words.arguments",
    "COMMANDS_PANEL_TITLE": "words.commands",
    "REQUIRED_LONG_STRING": "words.required",
}


def speak() -> None:
    """Set the titles of the help pages; called when one is shown, since what draws them takes long to import."""
    from typer import rich_utils

    for name, key in _TITLES.items():
        setattr(rich_utils, name, i18n.text(key))
    rich_utils.DEFAULT_STRING = i18n.catalogue()["words.default"][i18n.language()]
    if rich_utils._make_rich_text is not _whole_text:
        _original.append(rich_utils._make_rich_text)
        rich_utils._make_rich_text = _whole_text


_original: list[Callable[..., Any]] = []


def _whole_text(*, text: str, style: str = "", markup_mode: Any) -> Any:
    """A help text that is folded anywhere: Chinese has no spaces, and a table's cell would cut it short."""
    made = _original[0](text=text, style=style, markup_mode=markup_mode)
    made.overflow = "fold"
    return made


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Every fault's English text as a pattern; the ones with most fixed text come first, as they say most."""
    texts = {key: entry["en"] for key, entry in i18n.catalogue().items() if key.startswith("words.")}
    ordered = sorted(texts, key=lambda key: -len(re.sub(r"\{\w*\}", "", texts[key])))
    return tuple((re.compile(_pattern(texts[key]), re.DOTALL), key) for key in ordered)


def _pattern(text: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(text))


def said(message: str) -> str:
    """The library's message in the language in force; one that the catalogue does not know stays as it is."""
    for pattern, key in _patterns():
        found = pattern.fullmatch(message)
        if found:
            return i18n.text(key, **{name: said(value) for name, value in found.groupdict().items()})
    return message


class _Words:
    """Usage and help of a command in the user's language."""

    def format_usage(self, ctx: Context, formatter: HelpFormatter) -> None:
        pieces: list[str] = self.collect_usage_pieces(ctx)  # type: ignore[attr-defined]
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=i18n.text("words.usage"))

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        speak()
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        option: Any = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.help = i18n.text("words.help")
        return option  # type: ignore[no-any-return]


class Verb(_Words, TyperCommand):
    """A verb whose help is in the user's language."""


class Verbs(_Words, TyperGroup):
    """A group of verbs whose help is in the user's language."""
