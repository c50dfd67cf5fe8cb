"""``sampan weights inspect``: what a model is, read without running anything of it."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output


def register(group: typer.Typer) -> None:
    """Add the verb."""
    options.add_to("weights", group, inspect)


def inspect(
    source: str = typer.Argument(..., help=i18n.text("cli.opt.inspect"), metavar="PATH|ID"),
    hash_all: bool = typer.Option(False, "--hash", help=i18n.text("cli.opt.hash")),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Show the report; exit code 3 where the model is damaged or not what it seems."""
    from sampan.cli.report_lines import rows
    from sampan.flow import models

    report = models.inspect(source, output.progress(), hash_all=hash_all)
    options.save(report, out)
    output.print_value(report, lambda: output.facts_table(report.name, rows(report)))
