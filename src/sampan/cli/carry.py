"""``sampan carry``: one file to a target over ssh, taken up where it broke, with proof of arrival."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.key_signing import PasswordFile


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, carry, options.WORKSHOP)


def carry(
    file: Path = typer.Argument(..., help=i18n.text("cli.opt.carry-file"), metavar="FILE"),
    target: str = typer.Argument(..., help=i18n.text("cli.opt.carry-target"), metavar="ssh://USER@HOST:PORT/PATH"),
    jump: str | None = typer.Option(None, "--jump", metavar="USER@HOST:PORT", help=i18n.text("cli.opt.jump")),
    via_loopback: int | None = typer.Option(
        None, "--via-loopback", min=1, max=65535, metavar="PORT", help=i18n.text("cli.opt.loopback")
    ),
    identity: list[Path] = typer.Option([], "--identity", metavar="FILE", help=i18n.text("cli.opt.identity")),
    password_file: Path | None = PasswordFile,
    accept: str | None = typer.Option(
        None, "--accept-host-key", metavar="SHA256:…", help=i18n.text("cli.opt.accept")
    ),
    rate: str | None = typer.Option(None, "--rate", metavar="SIZE", help=i18n.text("cli.opt.rate")),
    no_sftp: bool = typer.Option(False, "--no-sftp", help=i18n.text("cli.opt.no-sftp")),
    receipt: options.SaveTo = None,
    timeout: float = typer.Option(15.0, "--timeout", min=0.1, help=i18n.text("cli.opt.timeout")),
    json: options.Json = False,
) -> None:
    """Nothing stands under the final name until its hash is right."""
    from sampan.cli.key_signing import password
    from sampan.cli.sizes import parse_size, show_size
    from sampan.flow import sending

    secret = password(password_file)
    route = sending.Route(
        jump=jump,
        loopback=via_loopback,
        identities=tuple(identity),
        accept=accept,
        password=secret.decode("utf-8", "surrogateescape") if secret else None,
        rate=None if rate is None else parse_size(rate),
        seconds=timeout,
        use_sftp=not no_sftp,
    )
    arrival = sending.carry(file, target, route, output.progress())
    options.save(arrival, receipt)
    rows = [
        (i18n.text("row.file"), f"{arrival.host}:{arrival.path}"),
        (i18n.text("row.size"), show_size(arrival.size_bytes)),
        ("SHA-256", arrival.sha256),
        (i18n.text("row.proof"), i18n.text(f"carry.proof-{arrival.proof}")),
        (i18n.text("row.total"), i18n.text("carry.took", seconds=f"{arrival.seconds:.1f}", way=arrival.way,
                                           breaks=arrival.breaks, resumed=show_size(arrival.resumed_bytes))),
    ]  # fmt: skip
    output.print_value(arrival, lambda: output.facts_table(i18n.text("cli.carry.title"), rows))
