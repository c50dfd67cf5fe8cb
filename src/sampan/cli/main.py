"""``sampan``: the verbs of the workshop and of the target, in the user's language."""

from __future__ import annotations

import importlib

import typer

from sampan import __version__, i18n

WORKSHOP_VERBS = (
    "ship",
    "survey",
    "weights",
    "plan",
    "build",
    "runtime",
    "wheelhouse",
    "bundle",
    "audit",
    "rehearse",
    "pack",
)
TARGET_VERBS = ("serve", "selftest", "install", "service", "doctor")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sampan {__version__}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """The whole command line; its help speaks the language in force when this is called."""
    app = typer.Typer(
        name="sampan",
        help=i18n.text("cli.help"),
        epilog=i18n.text("cli.epilog"),
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        lang: str = typer.Option("", "--lang", help=i18n.text("cli.opt.lang")),
        version: bool = typer.Option(
            False, "--version", help=i18n.text("cli.opt.version"), callback=_show_version, is_eager=True
        ),
    ) -> None:
        """Options that stand before the verb."""

    for verb in (*WORKSHOP_VERBS, *TARGET_VERBS):
        importlib.import_module(f"sampan.cli.{verb}").register(app)
    return app


def main() -> None:
    """Entry point of the ``sampan`` command."""
    i18n.use_environment()
    build_app()()
