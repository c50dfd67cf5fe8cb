"""``sampan weights resolve``: import or open a model, and make its golden set."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output


def register(group: typer.Typer) -> None:
    """Add the verb."""
    options.add_to("weights", group, resolve)


def resolve(
    source: str = typer.Argument(..., help=i18n.text("cli.opt.weights"), metavar="W"),
    quant: options.Quantization = "auto",
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Show what the model is."""
    from sampan.cli import weights_lines
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    info = stages.weights(source, quant, workshop_tools(output.progress()))
    options.save(info, out)
    output.print_value(info, lambda: output.facts_table(info.name, weights_lines.rows(info)))
