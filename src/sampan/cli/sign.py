"""``sampan sign``: vouch for a bundle's folder or tar."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.key_signing import PasswordFile


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, sign, options.STAGES)


def sign(
    bundle: Path = typer.Argument(..., help=i18n.text("cli.opt.bundle-or-tar"), metavar="BUNDLE"),
    key: Path = typer.Option(..., "--key", "-k", help=i18n.text("cli.opt.private-key"), metavar="FILE"),
    password_file: Path | None = PasswordFile,
    json: options.Json = False,
) -> None:
    """Every file is checked first: nobody signs what is damaged."""
    from sampan.bundle.delta import refuse_delta
    from sampan.cli.key_signing import password
    from sampan.flow import trusting

    refuse_delta(bundle)
    signed = trusting.sign(bundle, key, password(password_file), output.progress())
    rows = [(i18n.text("row.file"), signed.path), (i18n.text("row.signer"), signed.fingerprint)]
    rows += [("SHA-256", signed.sha256)] if signed.sha256 else []
    output.print_value(signed, lambda: output.facts_table(i18n.text("cli.sign.title"), rows))
