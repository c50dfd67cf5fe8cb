"""``sampan rehearse``: run a bundle in an empty copy of its target."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, rehearse, options.WORKSHOP)


def rehearse(
    bundle: Path = typer.Argument(..., help=i18n.text("cli.opt.bundle"), metavar="BUNDLE"),
    target: str | None = typer.Option(
        None,
        "--target",
        "-t",
        help=i18n.text("cli.opt.rehearse-target"),
        autocompletion=options.target_names,
        metavar="T",
        callback=options.filled("--target"),
    ),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Show the transcript; exit code 10 where it failed, 5 where it could not be run here."""
    from sampan.errors import ExitCode
    from sampan.flow import rehearsals
    from sampan.flow.tools import workshop_tools

    rehearsal = rehearsals.of_path(bundle, target, workshop_tools(output.progress()))
    options.save(rehearsal, out)
    outcome = f"{rehearsal.status} {rehearsal.reason}".strip()
    output.print_value(rehearsal, lambda: f"{rehearsal.transcript}\n{outcome}")
    if rehearsal.status == "failed":
        raise SystemExit(int(ExitCode.REHEARSAL_FAILED))
    if rehearsal.status == "skipped":
        raise SystemExit(int(ExitCode.MISSING_TOOL))
