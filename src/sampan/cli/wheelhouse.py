"""``sampan wheelhouse``: sampan and every Python package, right for the runtime."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, wheelhouse, options.STAGES)


def wheelhouse(
    arch: str = typer.Argument(..., help=i18n.text("cli.opt.arch"), metavar="ARCH"),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Take locked wheels, unpack and compile them."""
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    tools = workshop_tools(output.progress())
    made = stages.wheelhouse(stages.runtime(arch, tools), tools)
    options.save(made, out)
    rows = [(each.name, each.version, each.file_name) for each in made.wheels]
    output.print_value(made, lambda: output.facts_table(made.path, rows))
