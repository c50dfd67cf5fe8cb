"""``sampan``: the verbs of the workshop and of the target, in the user's language."""

from __future__ import annotations

import importlib
import sys

import typer

from sampan import __version__, i18n
from sampan.cli import entry
from sampan.errors import UsageError

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
    "sign",
    "split",
    "carry",
)
EVERYWHERE = ("survey",)
SERVICE_VERBS = ("status", "start", "stop", "restart", "recover", "logs", "uninstall")  # all in one module
RELEASE_VERBS = ("upgrade", "rollback", "releases", "gc")  # these, too
TARGET_VERBS = (
    "serve",
    "selftest",
    "install",
    "service",
    "release",
    "run",
    "doctor",
    "verify",
    "trust",
    "key",
    "join",
    "receipt",
    "apply",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sampan {__version__}")
        raise typer.Exit


def _check_language(wanted: str) -> str:
    if wanted and wanted.lower().replace("-", "_").partition("_")[0] not in i18n.LANGUAGES:
        raise UsageError("cli.lang", lang=wanted, known=", ".join(i18n.LANGUAGES))
    return wanted


def build_app() -> typer.Typer:
    """The whole command line; its help speaks the language in force when this is called.

    A bundle's own sampan has no verbs that need what only the workshop has.
    """
    target = entry.on_target()
    here = EVERYWHERE if target else WORKSHOP_VERBS
    app = typer.Typer(
        name="sampan",
        cls=entry.group([verb for verb in WORKSHOP_VERBS if verb not in here]),
        add_completion=not target,
        help=i18n.text("cli.help"),
        epilog=i18n.text("cli.epilog-target" if target else "cli.epilog"),
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        lang: str = typer.Option("", "--lang", help=i18n.text("cli.opt.lang"), callback=_check_language),
        version: bool = typer.Option(
            False, "--version", help=i18n.text("cli.opt.version"), callback=_show_version, is_eager=True
        ),
    ) -> None:
        """Options that stand before the verb."""

    for verb in (*here, *TARGET_VERBS):
        importlib.import_module(f"sampan.cli.{verb}").register(app)
    return app


def main() -> None:
    """Entry point of the ``sampan`` command."""
    i18n.use_environment()
    i18n.use_program(entry.program(), (*EVERYWHERE, *TARGET_VERBS, *SERVICE_VERBS, *RELEASE_VERBS))
    app = build_app()
    raise SystemExit(entry.run(app, sys.argv[1:]))
