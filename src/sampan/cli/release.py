"""``sampan upgrade | rollback | releases | gc``: which release of an installed service is in force."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.service import Name, Prefix
from sampan.cli.sizes import show_size

if TYPE_CHECKING:
    from sampan.install.gc import Releases
    from sampan.install.lookup import Found
    from sampan.install.model import Installed

_KEEP = typer.Option(2, "--keep", min=2, help=i18n.text("cli.gc.opt.keep"))
_UNSIGNED = typer.Option(False, "--unsigned", help=i18n.text("cli.install.opt.unsigned"))
_DOWNGRADE = typer.Option(False, "--allow-downgrade", help=i18n.text("cli.install.opt.allow-downgrade"))
_RESTART = typer.Option(False, "--restart", help=i18n.text("cli.upgrade.opt.restart"))
_CONSUME = typer.Option(False, "--consume", help=i18n.text("cli.opt.consume-bundle"))


def register(app: typer.Typer) -> None:
    """Add the four verbs."""
    for verb in (upgrade, rollback, releases, gc):
        options.add(app, verb, options.TARGET_PANEL)


def _found(name: str | None, prefix: Path | None) -> Found:
    from sampan.install.lookup import find

    bundle = os.environ.get("SAMPAN_BUNDLE")
    return find(Path(bundle) if bundle else None, name=name, prefix=prefix)


def _say(line: str) -> None:
    output.tell(line, err=output.wants_json())


def upgrade(
    bundle: Path = typer.Argument(..., help=i18n.text("cli.opt.bundle-or-tar"), metavar="BUNDLE"),
    key: list[Path] = typer.Option([], "--key", "-k", help=i18n.text("cli.opt.public-key"), metavar="FILE"),
    trusted: Path | None = typer.Option(None, "--trusted", help=i18n.text("cli.opt.trusted"), file_okay=False),
    unsigned: bool = _UNSIGNED,
    allow_downgrade: bool = _DOWNGRADE,
    consume: bool = _CONSUME,
    restart: bool = _RESTART,
    keep: int = _KEEP,
    name: Name = None,
    prefix: Prefix = None,
    json: options.Json = False,
) -> None:
    """Judge the bundle with this release's own code, then let it take over; what fails is taken back."""
    from sampan.flow import installing, opening
    from sampan.trust import keyring

    keys = [keyring.read(path) for path in key] or keyring.load(trusted or keyring.SYSTEM)
    wish = opening.Wish(keys, unsigned, allow_downgrade, keep, consume, restart)
    _print(installing.upgrade(bundle, _found(name, prefix), wish, _say, output.progress()))


def rollback(
    release: int | None = typer.Argument(None, min=1, help=i18n.text("cli.rollback.opt.release"), metavar="RELEASE"),
    restart: bool = _RESTART,
    name: Name = None,
    prefix: Prefix = None,
    json: options.Json = False,
) -> None:
    """Code, configuration and unit as they were."""
    from sampan.flow import installing

    _print(installing.rollback(_found(name, prefix), release, _say, output.progress(), restart=restart))


def _print(record: Installed) -> None:
    from sampan.spec.codec import to_data

    if output.wants_json():
        output.print_json(to_data(record))


def releases(name: Name = None, prefix: Prefix = None, json: options.Json = False) -> None:
    """What is there, the newest first."""
    from sampan.flow import installing

    found = installing.releases(_found(name, prefix))
    output.print_value(
        found,
        lambda: output.facts_table(
            i18n.text("cli.releases.title", name=found.name, prefix=found.prefix),
            _rows(found),
            i18n.text("cli.releases.columns").split("|"),
        ),
    )


def _rows(found: Releases) -> list[tuple[str, ...]]:
    return [
        (
            str(one.release),
            i18n.text(f"cli.releases.{'current' if one.current else 'previous' if one.previous else 'kept'}"),
            show_size(one.size_bytes),
            str(one.port or "-"),
        )
        for one in found.releases
    ]


def gc(
    keep: int = _KEEP,
    name: Name = None,
    prefix: Prefix = None,
    json: options.Json = False,
) -> None:
    """The current release and the one before always stay."""
    from sampan.flow import installing
    from sampan.spec.codec import to_data

    gone = installing.collect(_found(name, prefix), keep, _say, output.progress())
    if output.wants_json():
        output.print_json(to_data(gone))
    elif not gone.removed:
        typer.echo(i18n.text("cli.gc.nothing"))
