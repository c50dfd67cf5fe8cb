"""``sampan receipt``: what this release holds, as a few lines to copy to the workshop."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, receipt, options.TARGET_PANEL)


def receipt(json: options.Json = False) -> None:
    """Files that are damaged are not in it, and are named."""
    from sampan.flow import carrying, target

    made = carrying.receipt_of(target.bundle_root(), output.progress())
    if output.wants_json():
        output.print_value(made, str)
        return
    if made.damaged:
        told = i18n.text("cli.receipt.damaged", count=len(made.damaged), first=made.damaged[0])
        output.error_console().print(told, markup=False)
    typer.echo(made.text, nl=False)
