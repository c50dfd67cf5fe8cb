"""``sampan audit``: will these files run on that target? Reads, never executes."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, audit, options.WORKSHOP)


def audit(
    paths: list[Path] = typer.Argument(..., help=i18n.text("cli.opt.paths"), metavar="PATH…"),
    target: options.Target = "this",
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Exit code 4 where there is an error."""
    from sampan.audit.render import rows
    from sampan.errors import ExitCode
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    report = stages.audit(paths, stages.survey(target), workshop_tools(output.progress()))
    options.save(report, out)
    title = i18n.text("line.audit", **options.audit_counts(report))
    output.print_value(report, lambda: output.facts_table(title, rows(report)))
    if report.errors:
        raise SystemExit(int(ExitCode.INCOMPATIBLE))
