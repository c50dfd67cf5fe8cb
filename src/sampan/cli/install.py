"""``sampan install``: the second half of install.sh, after every file was verified."""

from __future__ import annotations

from pathlib import Path

import typer

from sampan import i18n
from sampan.cli import options, output

Prefix = typer.Option(None, "--prefix", help=i18n.text("cli.opt.prefix"))


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, install, options.TARGET_PANEL)


def install(
    prefix: Path | None = Prefix,
    port: int | None = typer.Option(None, "--port", min=1, max=65535, help=i18n.text("cli.opt.serve-port")),
    no_service: bool = typer.Option(False, "--no-service", help=i18n.text("cli.opt.no-service")),
    json: options.Json = False,
) -> None:
    """Lay the release down, start the service, prove it; undo everything where a step fails."""
    from sampan.flow import target
    from sampan.install.model import InstallOptions
    from sampan.install.steps import install as run
    from sampan.spec.codec import to_data
    from sampan.survey import features

    wanted = InstallOptions(
        bundle=target.bundle_root(),
        features=features.current(),
        prefix=prefix,
        port=port,
        service=not no_service,
    )
    installed = run(wanted, target.hands(_echo, output.progress()))
    if output.wants_json():
        output.print_json(to_data(installed))


def _echo(line: str) -> None:
    typer.echo(line, err=output.wants_json())
