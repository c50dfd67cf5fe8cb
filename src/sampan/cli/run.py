"""``sampan run``: serve in the foreground within limits, nothing installed, no root needed."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options
from sampan.cli.install import CpuList, Cpus, Memory


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, run, options.TARGET_PANEL)


def run(
    memory: Memory = None,
    cpus: Cpus = None,
    cpu_list: CpuList = None,
    host: str = typer.Option("127.0.0.1", "--host", help=i18n.text("cli.opt.host")),
    port: int | None = typer.Option(None, "--port", min=1, max=65535, help=i18n.text("cli.opt.serve-port")),
) -> None:
    """Become `serve` within the limits."""
    from sampan.cli.limits import own_limits
    from sampan.flow import bounded, target

    where = ("--host", host, *(("--port", str(port)) if port else ()))

    def say(line: str) -> None:
        typer.echo(line, err=True)

    bounded.run(target.bundle_root(), where, own_limits(memory, cpus, cpu_list), say)
