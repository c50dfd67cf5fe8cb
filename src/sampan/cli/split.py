"""``sampan split``: parts for sticks, discs and upload limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.carry.parts import PartList


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, split, options.STAGES)


def split(
    file: Path = typer.Argument(..., help=i18n.text("cli.opt.whole-file"), metavar="FILE"),
    size: str = typer.Option("fat32", "--size", "-s", help=i18n.text("cli.opt.part-size"), metavar="SIZE"),
    parity: int = typer.Option(0, "--parity", min=0, max=64, help=i18n.text("cli.opt.parity"), metavar="N"),
    only: str = typer.Option("", "--only", help=i18n.text("cli.opt.only"), metavar="N,N…"),
    out: Path | None = typer.Option(None, "--out", "-o", help=i18n.text("cli.opt.parts-out"), file_okay=False),
    json: options.Json = False,
) -> None:
    """Write FILE.001 … and the lists."""
    if only:
        _again(file, out or file.parent, only)
    else:
        _all(file, out or file.parent, size, parity)


def _all(file: Path, out: Path, wanted: str, parity: int) -> None:
    from sampan.carry import parts
    from sampan.carry.split import split as run
    from sampan.cli.sizes import parse_size, show_size

    plain = wanted in parts.MEDIA or wanted.isdecimal()
    made = run(file, out, wanted, None if plain else parse_size(wanted), output.progress(), parity_parts=parity)
    facts: dict[str, object] = {"count": len(made.parts), "size": show_size(made.parts[0].size)}
    lists = {"list": f"{made.name}{parts.LIST_SUFFIX}", "sums": f"{made.name}{parts.SUMS_SUFFIX}"}
    output.print_value(made, lambda: "\n".join(_said(made, facts | lists)))


def _said(made: PartList, facts: dict[str, object]) -> list[str]:
    lines = [i18n.text("cli.split.done", **facts)]
    return [*lines, i18n.text("cli.split.parity", count=len(made.parity))] if made.parity else lines


def _again(file: Path, out: Path, only: str) -> None:
    from sampan.carry import parts
    from sampan.carry.join import read_list
    from sampan.carry.split import again

    known = next(
        (place for place in (out, file.parent) if (place / f"{file.name}{parts.LIST_SUFFIX}").is_file()), out
    )
    listed = read_list(known / f"{file.name}{parts.LIST_SUFFIX}")
    made = again(file, out, listed, parts.numbers(only, len(listed.parts)), output.progress())
    names = [part.file for part in made]
    if output.wants_json():
        output.print_json({"schema": "sampan/parts-again/1", "files": names})
    else:
        typer.echo(i18n.text("cli.split.again", files=" ".join(names)))
