"""``sampan join``: all parts there and right, then one file again."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, join, options.TARGET_PANEL)


def join(
    parts: Path = typer.Argument(..., help=i18n.text("cli.opt.parts-folder"), metavar="FOLDER"),
    out: Path | None = typer.Option(None, "--out", "-o", help=i18n.text("cli.opt.join-out"), file_okay=False),
    consume: bool = typer.Option(False, "--consume", help=i18n.text("cli.opt.consume")),
    json: options.Json = False,
) -> None:
    """Exit code 9 where parts are missing or damaged: all of them are named in one line."""
    from sampan.carry.join import find_list, read_list
    from sampan.carry.mend import join_mended
    from sampan.carry.parts import join_numbers
    from sampan.errors import UsageError

    if consume and out is not None:
        raise UsageError("carry.consume-out")
    path = find_list(parts)
    listed = read_list(path)
    whole, made = join_mended(path.parent, listed, out or path.parent, output.progress(), consume=consume)
    if made and not output.wants_json():
        typer.echo(i18n.text("cli.join.mended", numbers=join_numbers(made)))
    if output.wants_json():
        output.print_json(
            {"schema": "sampan/joined/1", "path": str(whole), "sha256": listed.sha256, "mended": list(made)}
        )
    else:
        typer.echo(i18n.text("cli.join.done", path=whole, sha256=listed.sha256))
