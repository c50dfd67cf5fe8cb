"""``sampan apply``: make a delta whole again from this release."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, apply, options.TARGET_PANEL)


def apply(
    delta: Path = typer.Argument(..., help=i18n.text("cli.opt.delta"), metavar="DELTA.tar"),
    out: Path | None = typer.Option(None, "--out", "-o", help=i18n.text("cli.opt.apply-out"), file_okay=False),
    key: list[Path] = typer.Option([], "--key", "-k", help=i18n.text("cli.opt.public-key"), metavar="FILE"),
    unsigned: bool = typer.Option(False, "--unsigned", help=i18n.text("cli.opt.apply-unsigned")),
    json: options.Json = False,
) -> None:
    """Write the full bundle's folder, every file verified; nothing of it is run."""
    from sampan.flow import carrying, target
    from sampan.trust import keyring

    keys = [keyring.read(path) for path in key] or keyring.load(keyring.SYSTEM)
    where = out or delta.absolute().parent
    folder = carrying.apply(delta, target.bundle_root(), where, keys, output.progress(), unsigned=unsigned)
    if output.wants_json():
        output.print_json({"schema": "sampan/applied/1", "path": str(folder)})
    else:
        typer.echo(i18n.text("cli.apply.done", path=folder))
