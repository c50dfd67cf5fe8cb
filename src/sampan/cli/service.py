"""``sampan status | start | stop | restart | recover | logs | uninstall``: the life of an installed service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.sizes import show_size
from sampan.errors import ExitCode

if TYPE_CHECKING:
    from sampan.install.lookup import Found
    from sampan.install.model import ServiceStatus

Name = Annotated[str | None, typer.Option("--name", help=i18n.text("cli.opt.service-name"))]
Prefix = Annotated[Path | None, typer.Option("--prefix", help=i18n.text("cli.opt.prefix"))]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (status, start, stop, restart, recover, logs, uninstall):
        options.add(app, verb, options.TARGET_PANEL)


def _found(name: str | None, prefix: Path | None) -> Found:
    from sampan.install.lookup import find

    bundle = os.environ.get("SAMPAN_BUNDLE")
    return find(Path(bundle) if bundle else None, name=name, prefix=prefix)


def status(name: Name = None, prefix: Prefix = None, json: options.Json = False) -> None:
    """Exit code 0 only where the service answers."""
    from sampan.edge.process import ProcessRunner
    from sampan.flow import asking, target
    from sampan.install.service import status as ask

    found = _found(name, prefix)
    result = ask(found, found.machine(ProcessRunner()), asking.probe_health, target.run_folder(found.name))
    output.print_value(
        result, lambda: output.facts_table(i18n.text("cli.status.title", name=result.name), _rows(result))
    )
    if result.health != "ready":
        raise SystemExit(int(ExitCode.SERVICE))


def _rows(result: ServiceStatus) -> list[tuple[str, ...]]:
    """What is known; the rest is left out."""
    memory = show_size(result.memory_bytes) if result.memory_bytes else None
    enabled = None if result.enabled is None else i18n.text("word.yes" if result.enabled else "word.no")
    facts: tuple[tuple[str, object], ...] = (
        ("row.state", f"{result.state} ({result.mode})"),
        ("row.health", f"{result.health} {result.health_detail}".strip()),
        ("row.address", f"{result.scheme}://{result.host}:{result.port}/v1"),
        ("row.release", result.release),
        ("row.prefix", result.prefix),
        ("row.pid", result.pid),
        ("row.since", result.since),
        ("row.memory", memory),
        ("row.restarts", result.restarts),
        ("row.enabled", enabled),
        ("row.pending", result.pending and i18n.text("cli.status.pending", verb=result.pending)),
    )
    return [(i18n.text(key), str(value)) for key, value in facts if value is not None]


def start(name: Name = None, prefix: Prefix = None) -> None:
    """Start the unit; an upgrade that was cut off is taken back before."""
    from sampan.edge.process import ProcessRunner
    from sampan.install.service import start as run

    found = _settled(name, prefix)
    run(found, found.machine(ProcessRunner()))
    typer.echo(i18n.text("cli.started", name=found.name))


def restart(name: Name = None, prefix: Prefix = None) -> None:
    """Stop and start the unit; an upgrade that was cut off is taken back before."""
    from sampan.edge.process import ProcessRunner
    from sampan.install.service import restart as run

    found = _settled(name, prefix)
    run(found, found.machine(ProcessRunner()))
    typer.echo(i18n.text("cli.restarted", name=found.name))


def recover(name: Name = None, prefix: Prefix = None) -> None:
    """Take back what was cut off and nothing else: what the machine does at boot before it starts the service."""
    from sampan.flow import installing
    from sampan.install import journal

    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        output.tell(line)

    found = _found(name, prefix)
    if found.record is not None:
        installing.settle(found, say)
        if (Path(found.record.prefix) / journal.NAME).exists():  # what could not be taken back was said
            raise SystemExit(int(ExitCode.SERVICE))
    if not said:
        typer.echo(i18n.text("cli.recover.nothing", name=found.name))


def _settled(name: str | None, prefix: Path | None) -> Found:
    from sampan.flow import installing

    found = _found(name, prefix)
    if found.record is not None:
        installing.settle(found, lambda line: output.tell(line, err=True))
    return _found(name, prefix)


def logs(
    name: Name = None,
    prefix: Prefix = None,
    follow: bool = typer.Option(False, "--follow", "-f", help=i18n.text("cli.logs.opt.follow")),
    lines: int = typer.Option(100, "--lines", "-n", min=0, help=i18n.text("cli.logs.opt.lines")),
) -> None:
    """Become the program that shows them."""
    from sampan.flow import installing

    installing.logs(_found(name, prefix), follow=follow, lines=lines)


def stop(name: Name = None, prefix: Prefix = None) -> None:
    """Stop the unit or the foreground server."""
    from sampan.edge.process import ProcessRunner
    from sampan.flow import target
    from sampan.install.service import stop as run

    found = _found(name, prefix)
    ran = run(found, found.machine(ProcessRunner()), target.run_folder(found.name))
    typer.echo(i18n.text("cli.stopped" if ran else "cli.was-stopped", name=found.name))


def uninstall(
    name: Name = None,
    prefix: Prefix = None,
    purge: bool = typer.Option(False, "--purge", help=i18n.text("cli.uninstall.opt.purge")),
    json: options.Json = False,
) -> None:
    """Remove unit, user and prefix; name everything that was removed."""
    from sampan.flow import asking
    from sampan.install.uninstall import uninstall as run
    from sampan.spec.codec import to_data

    found = _found(name, prefix)
    removed = run(found, asking.hands(lambda line: output.tell(line, err=True), output.progress()), purge=purge)
    if output.wants_json():
        output.print_json(to_data(removed))
    else:
        typer.echo(i18n.text("cli.uninstalled", name=found.name))
