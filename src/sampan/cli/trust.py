"""``sampan trust show (or list) | add | remove``: the keys whose bundles this machine accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sampan import i18n
from sampan.cli import options, output, words

Folder = Annotated[
    Path | None, typer.Option("--trusted", help=i18n.text("cli.opt.trusted"), metavar="FOLDER", file_okay=False)
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=words.Verbs, no_args_is_help=True, rich_markup_mode="rich")
    for verb in (show, add, remove):
        options.add_to("trust", group, verb)
    group.command("list", cls=words.Verb, hidden=True, help=i18n.text("cli.trust.show.help"))(output.handled(show))
    app.add_typer(group, name="trust", help=i18n.text("cli.trust.help"), rich_help_panel=options.TARGET_PANEL)


def show(trusted: Folder = None, json: options.Json = False) -> None:
    """Every trusted key."""
    from sampan.trust import keyring

    folder = trusted or keyring.SYSTEM
    keys = keyring.load(folder)
    if output.wants_json():
        listed = [key.fingerprint for key in keys]
        output.print_json({"schema": "sampan/trusted-keys/1", "folder": str(folder), "keys": listed})
        return
    lines = [key.fingerprint for key in keys] or [i18n.text("cli.trust.none", folder=folder)]
    output.console().print("\n".join(lines), markup=False)


def add(
    public: Path = typer.Argument(..., help=i18n.text("cli.opt.public-key"), metavar="FILE.pub"),
    fingerprint: str = typer.Option("", "--fingerprint", help=i18n.text("cli.opt.fingerprint"), metavar="SHA256:…"),
    trusted: Folder = None,
    json: options.Json = False,
) -> None:
    """A key that a trusted key endorsed needs no fingerprint; any other one does."""
    from sampan.errors import VerificationError
    from sampan.flow import signing_keys
    from sampan.trust import keyring, keys

    folder = trusted or keyring.SYSTEM
    key = keyring.read(public)
    if fingerprint and not keys.same_fingerprint(key, fingerprint):
        raise VerificationError("trust.fingerprint", path=str(public), found=key.fingerprint)
    if not fingerprint and not signing_keys.is_vouched(public, keyring.load(folder)):
        raise VerificationError("trust.first-use", path=str(public), found=key.fingerprint)
    path = keyring.add(folder, key)
    _say("cli.trust.added", key.fingerprint, path)


def remove(
    fingerprint: str = typer.Argument(..., help=i18n.text("cli.opt.fingerprint"), metavar="SHA256:…"),
    trusted: Folder = None,
    json: options.Json = False,
) -> None:
    """Bundles that only this key signed are refused from now on."""
    from sampan.trust import keyring

    folder = trusted or keyring.SYSTEM
    gone = keyring.remove(folder, fingerprint.removeprefix("SHA256:").lower())
    _say("cli.trust.removed", gone.fingerprint, folder)


def _say(key: str, fingerprint: str, path: Path) -> None:
    if output.wants_json():
        output.print_json({"schema": "sampan/trusted-key/1", "fingerprint": fingerprint, "path": str(path)})
    else:
        typer.echo(i18n.text(key, fingerprint=fingerprint, path=path))
