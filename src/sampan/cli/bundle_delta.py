"""``sampan bundle delta``: only what the target lacks."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.sizes import show_size


def register(group: typer.Typer) -> None:
    """Add the verb."""
    options.add_to("bundle", group, delta)


def delta(
    new: Path = typer.Argument(..., help=i18n.text("cli.opt.bundle-or-tar"), metavar="NEW"),
    since: str = typer.Option(..., "--since", help=i18n.text("cli.opt.since"), metavar="RECEIPT|OLD"),
    out: options.Out = Path("out"),
    json: options.Json = False,
) -> None:
    """Write NAME-RELEASE.since-OLD.tar; ``./sampan upgrade`` and ``./sampan apply`` take it."""
    from sampan.flow import carrying

    made = carrying.make_delta(new, since, out, output.progress())
    sizes = {"size": show_size(made.size_bytes), "full": show_size(made.full_bytes)}
    told = i18n.text("cli.bundle.delta-done", path=made.path, travels=made.travels, left=made.left_out, **sizes)
    output.print_value(made, lambda: told)
