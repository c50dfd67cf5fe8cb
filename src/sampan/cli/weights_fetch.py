"""``sampan weights fetch``: bring a model from a hub or an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.spec.hub import Fetched

_MOST_FILES = 20


def register(group: typer.Typer) -> None:
    """Add the verb."""
    options.add_to("weights", group, fetch)


def fetch(
    source: str = typer.Argument(..., help=i18n.text("cli.opt.fetch"), metavar="SOURCE"),
    out: Path | None = typer.Option(None, "--out", "-o", file_okay=False, help=i18n.text("cli.opt.fetch-out")),
    json: options.Json = False,
) -> None:
    """Show where the files are and what they are."""
    from sampan.flow import models
    from sampan.flow.tools import workshop_tools

    fetched = models.fetch(source, workshop_tools(output.progress()), out)
    output.print_value(fetched, lambda: output.facts_table(fetched.repository, _rows(fetched)))
    if not output.wants_json():
        output.console().print(i18n.text("line.fetched-next", path=fetched.path), markup=False)


def _rows(fetched: Fetched) -> list[tuple[str, str]]:
    from rich.markup import escape

    from sampan.cli.sizes import show_size

    rows = [
        (i18n.text("row.source"), escape(fetched.source)),
        (i18n.text("row.folder"), escape(fetched.path)),
        (i18n.text("row.size"), show_size(fetched.size_bytes)),
        (i18n.text("row.commit"), fetched.commit or fetched.revision),
    ]
    for file in fetched.files[:_MOST_FILES]:
        rows.append(("", f"[dim]{file.sha256}  {show_size(file.size_bytes or 0)}  {escape(file.path)}[/]"))
    if len(fetched.files) > _MOST_FILES:
        rows.append(("", f"[dim]… {len(fetched.files)}[/]"))
    if fetched.remembered:
        rows.append(("", f"[yellow]{i18n.text('line.remembered')}[/]"))
    return rows
