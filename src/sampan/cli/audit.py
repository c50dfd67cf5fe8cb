"""``sampan audit``: will these files run on that target? Reads, never executes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.spec.artefacts import AuditReport

_MARKS = {"error": ("✗", "red"), "warning": ("!", "yellow"), "info": ("i", "cyan")}


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
    from sampan.audit.render import summary
    from sampan.errors import ExitCode
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    report = stages.audit(paths, stages.survey(target), workshop_tools(output.progress()))
    options.save(report, out)
    output.print_value(report, lambda: "\n".join((summary(report), *_lines(report))))
    if report.errors:
        raise SystemExit(int(ExitCode.INCOMPATIBLE))


def _lines(report: AuditReport) -> list[str]:
    """A finding: where and which, what it is, what to do."""
    from sampan.audit.render import rows

    lines = []
    for row in rows(report):
        mark, colour = _MARKS[row.severity]
        lines += [f"\n[{colour}]{mark} {row.code}[/]  [bold]{escape(row.path)}[/]", f"  {escape(row.message)}"]
        lines += [f"  [dim]→ {escape(row.fix)}[/]"] if row.fix else []
    return lines
