"""How the command line is started: where it runs, and errors that come before any verb."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import typer
from typer._click import Command, Context  # typer carries its own click, and exports no base of its errors
from typer._click.exceptions import ClickException, NoArgsIsHelpError

from sampan.cli import output, words
from sampan.errors import SampanError, UsageError

_WORKSHOP_LIBRARY = "unearth"  # travels in no bundle


def on_target(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a bundle's own sampan: the launcher says so, and the workshop's libraries are not there."""
    return bool(environ.get("SAMPAN_BUNDLE")) and find_spec(_WORKSHOP_LIBRARY) is None


def program() -> str:
    """What the user types before the verb."""
    return "./sampan" if on_target() else "sampan"


def group(elsewhere: Sequence[str]) -> type[words.Verbs]:
    """A group of verbs that knows the ones of the workshop, and says of them where they belong."""

    class Verbs(words.Verbs):
        """Raises UsageError for a verb of the workshop."""

        def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
            """As click does it, but for verbs of the workshop."""
            if args and args[0] in elsewhere:
                raise UsageError("cli.workshop-verb", verb=args[0])
            return super().resolve_command(ctx, args)

    return Verbs


def run(app: typer.Typer, typed: Sequence[str]) -> int:
    """Run the command line; the exit code. Errors of the words themselves are JSON beside ``--json``."""
    output.use_json("--json" in typed)
    try:
        _refuse_empty(typed)
        code = app(list(typed), prog_name=program(), complete_var="_SAMPAN_COMPLETE", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except NoArgsIsHelpError as error:
        error.show()
        return int(error.exit_code)
    except ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else program()
        return _end(UsageError("cli.usage", detail=words.said(error.format_message()), command=command))
    except SampanError as error:
        return _end(error)


def _refuse_empty(typed: Sequence[str]) -> None:
    """An empty word is a shell variable that was not set; as a path it would mean the current folder.

    Raises UsageError. Options say for themselves whether their value may be empty.
    """
    for place, word in enumerate(typed):
        if not word.strip() and not (place and typed[place - 1].startswith("-")):
            raise UsageError("cli.empty-word", place=place + 1)


def _end(error: SampanError) -> int:
    output.show_error(error)
    return int(error.exit_code)
