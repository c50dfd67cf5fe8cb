"""``sampan key new | endorse``: the keys that sign bundles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.flow.signing_keys import Signing

PasswordFile = typer.Option(
    None, "--password-file", help=i18n.text("cli.opt.password-file"), metavar="FILE", dir_okay=False
)
SignWith = typer.Option(None, "--sign", help=i18n.text("cli.opt.sign-with"), metavar="KEY", dir_okay=False)


def register(group: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (new, endorse):
        options.add_to("key", group, verb)


def signing(key: Path | None, password_file: Path | None) -> Signing | None:
    """What ``--sign`` and ``--password-file`` mean together. Raises UsageError, BadInputError."""
    from sampan.errors import UsageError
    from sampan.flow.signing_keys import Signing

    if key is None:
        if password_file is not None:
            raise UsageError("trust.password-alone")
        return None
    return Signing(key, password(password_file))


def password(path: Path | None) -> bytes | None:
    """The first line of the file. Never from an argument: those are seen by every process of the machine."""
    from sampan.errors import BadInputError

    if path is None:
        return None
    try:
        line = path.read_bytes().split(b"\n")[0].rstrip(b"\r")
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error
    if not line:
        raise BadInputError("trust.password", path=str(path))
    return line


def new(
    path: Path = typer.Argument(..., help=i18n.text("cli.opt.new-key"), metavar="FILE"),
    password_file: Path | None = PasswordFile,
    json: options.Json = False,
) -> None:
    """Write FILE (0600) and FILE.pub; print the fingerprint."""
    from sampan.flow import signing_keys

    public = signing_keys.new_key(path, password(password_file))
    shown = {
        "schema": "sampan/key/1",
        "private": str(path),
        "public": f"{path}.pub",
        "fingerprint": public.fingerprint,
    }
    if output.wants_json():
        output.print_json(shown)
    else:
        typer.echo(i18n.text("cli.key.made", private=path, public=f"{path}.pub", fingerprint=public.fingerprint))


def endorse(
    public: Path = typer.Argument(..., help=i18n.text("cli.opt.new-public-key"), metavar="NEW.pub"),
    key: Path = typer.Option(..., "--key", "-k", help=i18n.text("cli.opt.old-key"), metavar="OLD"),
    note: str = typer.Option("", "--note", help=i18n.text("cli.opt.note")),
    password_file: Path | None = PasswordFile,
    json: options.Json = False,
) -> None:
    """Write NEW.pub.dsse."""
    from sampan.flow import signing_keys

    path = signing_keys.endorse(public, key, password(password_file), note)
    if output.wants_json():
        output.print_json({"schema": "sampan/endorsement/1", "path": str(path)})
    else:
        typer.echo(i18n.text("cli.key.endorsed", path=path))
