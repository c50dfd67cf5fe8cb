"""``sampan pack``: seal a work folder's bundle with what was proved, and write the tar."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, pack, options.STAGES)


def pack(
    work: Path = typer.Argument(..., help=i18n.text("cli.opt.work"), metavar="WORK"),
    out: options.Out = Path("out"),
    allow_findings: bool = typer.Option(False, "--allow-findings", help=i18n.text("cli.opt.allow-findings")),
    json: options.Json = False,
) -> None:
    """Take artefacts 07 to 09 and give 10. Refuses what failed its audit or rehearsal."""
    from sampan.cli.stage_lines import next_lines
    from sampan.flow.ship import pack_work
    from sampan.flow.tools import workshop_tools

    package = pack_work(work, out, workshop_tools(output.progress()), allow_findings=allow_findings)
    lines = "\n".join((package.path, *next_lines(package)))
    output.print_value(package, lambda: lines)
