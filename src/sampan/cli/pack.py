"""``sampan pack``: seal a work folder's bundle with what was proved, and write the tar."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.key_signing import PasswordFile, SignWith, signing


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, pack, options.STAGES)


def pack(
    work: Path = typer.Argument(..., help=i18n.text("cli.opt.work"), metavar="WORK"),
    out: options.Out = Path("out"),
    allow_findings: bool = typer.Option(False, "--allow-findings", help=i18n.text("cli.opt.allow-findings")),
    sign: Path | None = SignWith,
    password_file: Path | None = PasswordFile,
    json: options.Json = False,
) -> None:
    """Take artefacts 07 to 09 and give 10. Refuses what failed its audit or rehearsal."""
    from sampan.cli.stage_lines import next_lines
    from sampan.flow.ship import pack_work
    from sampan.flow.tools import workshop_tools

    signed_by = signing(sign, password_file)
    tools = workshop_tools(output.progress())
    package = pack_work(work, out, tools, allow_findings=allow_findings, sign=signed_by)
    lines = "\n".join((package.path, *next_lines(package)))
    output.print_value(package, lambda: lines)
