"""``sampan bundle``: a group of verbs on bundles; a bare work folder means ``assemble``, as it always did."""

from __future__ import annotations

import typer
from typer._click import Context

from sampan import i18n
from sampan.cli import bundle_assemble, bundle_delta, bundle_look, options, words

_DEFAULT = "assemble"


class _Verbs(words.Verbs):
    """Takes what is no verb for the work folder of ``assemble``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As click does it, with the default verb put before a folder or an option of it."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=_Verbs, no_args_is_help=True, rich_markup_mode="rich")
    for module in (bundle_assemble, bundle_look, bundle_delta):
        module.register(group)
    app.add_typer(
        group,
        name="bundle",
        help=i18n.text("cli.bundle.help"),
        epilog=i18n.text("cli.bundle.epilog"),
        rich_help_panel=options.STAGES,
    )
