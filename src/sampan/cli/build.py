"""``sampan build``: the engine for a plan's CPU variants."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, build, options.STAGES)


def build(
    plan: Path = typer.Argument(..., help=i18n.text("cli.opt.plan-file"), metavar="PLAN.json"),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Compile what is not in the cache yet."""
    from sampan.cli.sizes import show_size
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools
    from sampan.spec.codec import load
    from sampan.spec.plan import Plan

    made = stages.build(load(Plan, plan), workshop_tools(output.progress()))
    options.save(made, out)
    rows = [(each.name, show_size(each.size_bytes), each.path) for each in made.variants]
    output.print_value(made, lambda: output.facts_table(f"{made.engine} {made.version}", rows))
