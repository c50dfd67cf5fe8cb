"""``sampan serve``: the bundle's model in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sampan import i18n
from sampan.cli import options

_KEYS, _TLS, _AUDIT = (i18n.text(f"cli.serve.opt.{name}") for name in ("keys", "tls", "audit"))
File = Annotated[Path | None, typer.Option("--keys", help=_KEYS, dir_okay=False)]
Certificate = Annotated[Path | None, typer.Option("--tls-cert", help=_TLS, dir_okay=False)]
CertificateKey = Annotated[Path | None, typer.Option("--tls-key", help=_TLS, dir_okay=False)]
Audit = Annotated[Path | None, typer.Option("--audit-log", help=_AUDIT, dir_okay=False)]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, serve, options.TARGET_PANEL)


def serve(
    host: str = typer.Option("127.0.0.1", "--host", help=i18n.text("cli.opt.host")),
    port: int | None = typer.Option(None, "--port", min=1, max=65535, help=i18n.text("cli.opt.serve-port")),
    keys: File = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    audit_log: Audit = None,
    log_json: bool = typer.Option(False, "--log-json", help=i18n.text("cli.serve.opt.log-json")),
    queue: int = typer.Option(256, "--queue", min=1, help=i18n.text("cli.serve.opt.queue")),
    queue_tokens: int = typer.Option(131_072, "--queue-tokens", min=1, help=i18n.text("cli.serve.opt.queue-tokens")),
    timeout: float = typer.Option(600.0, "--timeout", min=1, help=i18n.text("cli.serve.opt.timeout")),
    cache: int = typer.Option(0, "--cache", min=0, help=i18n.text("cli.serve.opt.cache")),
) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    from sampan.flow import serving, target
    from sampan.gateway.settings import MIB, Files, Limits

    def say(line: str) -> None:
        typer.echo(line, err=True)

    files = Files(keys=keys, certificate=tls_cert, certificate_key=tls_key, audit_log=audit_log)
    limits = Limits(queue_requests=queue, queue_tokens=queue_tokens, request_seconds=timeout, cache_bytes=cache * MIB)
    serving.serve(target.bundle_root(), host=host, port=port, say=say, files=files, limits=limits, json_logs=log_json)
