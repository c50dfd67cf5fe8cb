"""``sampan key``: keys that sign bundles (made in the workshop), keys of the service callers (kept on the target)."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import typer

from sampan import i18n
from sampan.cli import entry, options, words

# Each registers its own verbs. Signing keys are made where the workshop's libraries are.
_WORKSHOP = ("key_signing",)
_EVERYWHERE = ("key_api",)


def register(app: typer.Typer) -> None:
    """Add the group, where it has a verb."""
    group = typer.Typer(cls=words.Verbs, no_args_is_help=True, rich_markup_mode="rich")
    for name in (*(() if entry.on_target() else _WORKSHOP), *_EVERYWHERE):
        if find_spec(f"sampan.cli.{name}"):
            importlib.import_module(f"sampan.cli.{name}").register(group)
    if group.registered_commands:
        panel = options.TARGET_PANEL
        app.add_typer(group, name="key", help=i18n.text("cli.key.help"), rich_help_panel=panel)
