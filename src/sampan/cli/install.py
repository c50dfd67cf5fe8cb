"""``sampan install``: from this unpacked bundle to a running service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.errors import UsageError

Prefix = typer.Option(None, "--prefix", help=i18n.text("cli.opt.prefix"))
Memory = Annotated[str | None, typer.Option("--memory", help=i18n.text("cli.limit.memory"), metavar="SIZE")]
Cpus = Annotated[float | None, typer.Option("--cpus", min=0.1, help=i18n.text("cli.limit.cpus"), metavar="N")]
CpuList = Annotated[str | None, typer.Option("--cpu-list", help=i18n.text("cli.limit.cpu-list"), metavar="LIST")]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, install, options.TARGET_PANEL)


def install(
    prefix: Path | None = Prefix,
    host: str | None = typer.Option(None, "--host", help=i18n.text("cli.opt.host")),
    port: int | None = typer.Option(None, "--port", min=1, max=65535, help=i18n.text("cli.opt.serve-port")),
    user: bool = typer.Option(False, "--user", help=i18n.text("cli.install.opt.user")),
    script: bool = typer.Option(False, "--script", help=i18n.text("cli.install.opt.script")),
    no_service: bool = typer.Option(False, "--no-service", help=i18n.text("cli.opt.no-service")),
    keys: Path | None = typer.Option(None, "--keys", help=i18n.text("cli.serve.opt.keys"), dir_okay=False),
    tls_cert: Path | None = typer.Option(None, "--tls-cert", help=i18n.text("cli.install.opt.tls"), dir_okay=False),
    tls_key: Path | None = typer.Option(None, "--tls-key", help=i18n.text("cli.install.opt.tls"), dir_okay=False),
    memory: Memory = None,
    cpus: Cpus = None,
    cpu_list: CpuList = None,
    allow_downgrade: bool = typer.Option(
        False, "--allow-downgrade", help=i18n.text("cli.install.opt.allow-downgrade")
    ),
    unsigned: bool = typer.Option(False, "--unsigned", help=i18n.text("cli.install.opt.unsigned")),
    consume: bool = typer.Option(False, "--consume", help=i18n.text("cli.opt.consume-bundle")),
    json: options.Json = False,
) -> None:
    """Lay the release down, start the service, prove it; undo everything where a step fails."""
    from sampan.cli.limits import own_limits
    from sampan.flow import asking, installing, target
    from sampan.install import model
    from sampan.install.steps import install as run
    from sampan.spec.codec import to_data
    from sampan.survey import features

    if no_service and (user or script):
        raise UsageError("cli.install.no-service-and-user")
    bundle = target.bundle_root()
    scope = model.SCRIPT if script else model.USER if user else model.SYSTEM
    of_root = scope == model.SYSTEM and (not no_service or os.geteuid() == 0)
    if not of_root and prefix is None:
        prefix = model.user_home() / target.read_plan(bundle).name
    wanted = model.InstallOptions(
        bundle=bundle,
        features=features.current(),
        prefix=prefix,
        port=port,
        host=host,
        service=not no_service,
        scope=scope,
        keys=str(keys.absolute()) if keys else None,
        certificate=str(tls_cert.absolute()) if tls_cert else None,
        certificate_key=str(tls_key.absolute()) if tls_key else None,
        limits=own_limits(memory, cpus, cpu_list),
        allow_downgrade=allow_downgrade,
        unsigned=unsigned,
        who=installing.who(),
        guards=installing.guards(),
        consume=consume,
    )
    installed = run(wanted, asking.hands(_echo, output.progress()))
    if output.wants_json():
        output.print_json(to_data(installed))


def _echo(line: str) -> None:
    output.tell(line, err=output.wants_json())
