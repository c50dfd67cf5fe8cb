"""``sampan key add | list | revoke``: the keys of those who call the API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.gateway.keys import Key

File = Annotated[Path | None, typer.Option("--file", help=i18n.text("cli.api-key.opt.file"), dir_okay=False)]

Scopes = Annotated[list[str] | None, typer.Option("--scope", help=i18n.text("cli.api-key.opt.scope"))]


def register(group: typer.Typer) -> None:
    """Add the three verbs to ``sampan key``."""
    for verb in (add, list, revoke):
        options.add_to("key", group, verb)


def add(
    name: str = typer.Argument(..., help=i18n.text("cli.api-key.opt.name"), metavar="NAME"),
    scope: Scopes = None,
    lane: str = typer.Option("interactive", "--lane", help=i18n.text("cli.api-key.opt.lane")),
    rpm: int = typer.Option(0, "--rpm", min=0, help=i18n.text("cli.api-key.opt.rpm")),
    tpm: int = typer.Option(0, "--tpm", min=0, help=i18n.text("cli.api-key.opt.tpm")),
    concurrent: int = typer.Option(0, "--concurrent", min=0, help=i18n.text("cli.api-key.opt.concurrent")),
    file: File = None,
    json: options.Json = False,
) -> None:
    """Make a key and show it, this once."""
    import time

    from sampan.flow import api_keys
    from sampan.gateway.keys import Key

    path, service = _place(file)
    scopes = tuple(scope) if scope else ("embeddings", "chat")
    wish = Key("", name, "", scopes, lane, rpm, tpm, concurrent, int(time.time()))
    made, text = api_keys.add(path, wish, service)
    if output.wants_json():
        output.print_json({"schema": "sampan/key-made/1", "key": text, "file": str(path), **_facts(made)})
        return
    typer.echo(i18n.text("cli.api-key.made", id=made.id, name=name, path=path), err=True)
    typer.echo(text)
    typer.echo(i18n.text("cli.api-key.then", unit=f"sampan-{service or 'NAME'}"), err=True)


def list(file: File = None, json: options.Json = False) -> None:
    """Every key, without its secret."""
    from sampan.gateway import keys

    path, _ = _place(file)
    found = keys.load(path)
    if output.wants_json():
        output.print_json({"schema": "sampan/key-list/1", "file": str(path), "keys": [_facts(key) for key in found]})
        return
    rows = [_row(key) for key in found]
    headings = i18n.text("cli.api-key.columns").split("|")
    output.console().print(output.facts_table(i18n.text("cli.api-key.title", path=path), rows, headings))


def revoke(
    which: str = typer.Argument(..., help=i18n.text("cli.api-key.opt.which"), metavar="NAME|ID"),
    file: File = None,
    json: options.Json = False,
) -> None:
    """From the next reload on the key is refused."""
    from sampan.flow import api_keys

    path, service = _place(file)
    gone = api_keys.revoke(path, which)
    if output.wants_json():
        output.print_json({"schema": "sampan/key-revoked/1", "file": str(path), **_facts(gone)})
        return
    typer.echo(i18n.text("cli.api-key.revoked", id=gone.id, name=gone.name))
    typer.echo(i18n.text("cli.api-key.then", unit=f"sampan-{service or 'NAME'}"), err=True)


def _place(file: Path | None) -> tuple[Path, str | None]:
    """The file, and the service that this bundle is for."""
    from sampan.flow import api_keys, target

    root = os.environ.get("SAMPAN_BUNDLE")
    name = target.read_plan(Path(root)).name if root else None
    return file or api_keys.file_of(name), name


def _facts(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": key.scopes,
        "lane": key.lane,
        "requests_per_minute": key.requests_per_minute,
        "tokens_per_minute": key.tokens_per_minute,
        "concurrent": key.concurrent,
        "created": key.created,
        "revoked": key.revoked,
    }


def _row(key: Key) -> tuple[str, ...]:
    numbers = (key.requests_per_minute, key.tokens_per_minute, key.concurrent)
    state = i18n.text("cli.api-key.was-revoked" if key.revoked else "cli.api-key.in-force")
    return key.id, key.name, " ".join(key.scopes), key.lane, *(str(number or "-") for number in numbers), state
