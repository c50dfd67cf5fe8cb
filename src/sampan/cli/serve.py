"""``sampan serve``: the bundle's model in the foreground."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, serve, options.TARGET_PANEL)


def serve(
    host: str = typer.Option("127.0.0.1", "--host", help=i18n.text("cli.opt.host")),
    port: int | None = typer.Option(None, "--port", min=1, max=65535, help=i18n.text("cli.opt.serve-port")),
) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    from sampan.flow import target

    def say(line: str) -> None:
        typer.echo(line, err=True)

    target.serve(target.bundle_root(), host=host, port=port, say=say)
