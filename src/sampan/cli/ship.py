"""``sampan ship``: the whole way, from a target's name to one tested file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.key_signing import PasswordFile, SignWith, signing

if TYPE_CHECKING:
    from sampan.flow.ship import Shipped, StageDone


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, ship, options.WORKSHOP)


def ship(
    weights: options.Weights,
    target: options.Target,
    name: options.Name = None,
    release: options.Release = 1,
    out: options.Out = Path("out"),
    quant: options.Quantization = "auto",
    memory: options.Memory = None,
    cores: options.Cores = None,
    concurrency: options.Concurrency = None,
    max_tokens: options.MaxTokens = None,
    port: options.Port = 8080,
    no_rehearse: bool = typer.Option(False, "--no-rehearse", help=i18n.text("cli.opt.no-rehearse")),
    allow_findings: bool = typer.Option(False, "--allow-findings", help=i18n.text("cli.opt.allow-findings")),
    sign: Path | None = SignWith,
    password_file: Path | None = PasswordFile,
    json: options.Json = False,
) -> None:
    """Build, audit, rehearse and pack one bundle."""
    from sampan.flow.ship import ShipRequest
    from sampan.flow.ship import ship as run
    from sampan.flow.tools import workshop_tools

    request = ShipRequest(
        weights=weights,
        target=target,
        out=out,
        name=name,
        release=release,
        quantization=quant,
        rehearse=not no_rehearse,
        allow_findings=allow_findings,
        sign=signing(sign, password_file),
        limits=options.limits(memory, cores, concurrency, max_tokens, port),
    )
    shipped = run(request, workshop_tools(output.progress()), _say_done)
    if output.wants_json():
        from sampan.flow.ship import to_data

        output.print_json(to_data(shipped))
    else:
        _show(shipped)


def _say_done(done: StageDone) -> None:
    """One line a stage, as it ends."""
    if output.wants_json():
        return
    from sampan.cli.stage_lines import describe

    title = i18n.text(f"stage.{done.stage}")
    output.error_console().print(f"[green]✓[/] [bold]{title}[/] {describe(done)} [dim]{done.seconds:.1f} s[/]")


def _show(shipped: Shipped) -> None:
    from sampan.cli.stage_lines import built_rows, measured_rows, next_lines

    console = output.console()
    console.print()
    console.print(output.facts_table(i18n.text("cli.ship.built"), built_rows(shipped)))
    console.print()
    console.print(output.facts_table(i18n.text("cli.ship.measured"), measured_rows(shipped)))
    console.print()
    console.print(f"[bold]{i18n.text('cli.ship.next', file=shipped.package.path)}[/]")
    for line in next_lines(shipped.package):
        console.print(f"    {line}", markup=False)
