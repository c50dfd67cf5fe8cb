"""Options that several verbs share. Help texts are looked up when this is imported: the language is set by then."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sampan import i18n
from sampan.cli.output import use_json

WORKSHOP = i18n.text("cli.panel.workshop")
STAGES = i18n.text("cli.panel.stages")
TARGET_PANEL = i18n.text("cli.panel.target")


def _json(wanted: bool) -> bool:
    use_json(wanted)
    return wanted


def _target_names(incomplete: str) -> list[str]:
    """Shell completion of known targets."""
    from sampan.survey import known

    return [name for name in (*known.names(), "this") if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help=i18n.text("cli.opt.json"), callback=_json, is_eager=True)]
Target = Annotated[
    str,
    typer.Option("--target", "-t", help=i18n.text("cli.opt.target"), autocompletion=_target_names, metavar="T"),
]
Weights = Annotated[str, typer.Option("--weights", "-w", help=i18n.text("cli.opt.weights"), metavar="W")]
Quantization = Annotated[str, typer.Option("--quant", help=i18n.text("cli.opt.quant"))]
Name = Annotated[str | None, typer.Option("--name", "-n", help=i18n.text("cli.opt.name"))]
Release = Annotated[int, typer.Option("--release", min=1, help=i18n.text("cli.opt.release"))]
Out = Annotated[Path, typer.Option("--out", "-o", help=i18n.text("cli.opt.out"), file_okay=False)]
SaveTo = Annotated[Path | None, typer.Option("--out", "-o", help=i18n.text("cli.opt.save"))]
Memory = Annotated[str | None, typer.Option("--memory", help=i18n.text("cli.opt.memory"))]
Cores = Annotated[int | None, typer.Option("--cores", min=1, help=i18n.text("cli.opt.cores"))]
Concurrency = Annotated[int | None, typer.Option("--concurrency", min=1, help=i18n.text("cli.opt.concurrency"))]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help=i18n.text("cli.opt.max-tokens"))]
Port = Annotated[int, typer.Option("--port", min=1, max=65535, help=i18n.text("cli.opt.port"))]
