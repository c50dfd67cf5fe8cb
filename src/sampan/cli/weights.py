"""``sampan weights``: a group of verbs on models; a bare source means ``resolve``, as it always did."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import typer
from typer._click import Context

from sampan import i18n
from sampan.cli import options, words

# Each registers its own verbs: opening, looking and fetching; importing and quantizing.
_MODULES = ("weights_resolve", "weights_inspect", "weights_fetch", "weights_make")
_DEFAULT = "resolve"


class _Verbs(words.Verbs):
    """Takes what is no verb for the source of ``resolve``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As click does it, with the default verb put before a source or an option of it."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=_Verbs, no_args_is_help=True, rich_markup_mode="rich")
    for name in _MODULES:
        if find_spec(f"sampan.cli.{name}"):
            importlib.import_module(f"sampan.cli.{name}").register(group)
    app.add_typer(
        group,
        name="weights",
        help=i18n.text("cli.weights.help"),
        epilog=i18n.text("cli.weights.epilog"),
        rich_help_panel=options.STAGES,
    )
