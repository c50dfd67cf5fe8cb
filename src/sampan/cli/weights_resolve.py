"""``sampan weights resolve``: import or open a model, and make its golden set."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output


def register(group: typer.Typer) -> None:
    """Add the verb."""
    options.add_to("weights", group, resolve)


def resolve(
    source: str = typer.Argument(..., help=i18n.text("cli.opt.weights"), metavar="W"),
    quant: options.Quantization = "auto",
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Show what the model is."""
    from sampan.cli.sizes import show_size
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    info = stages.weights(source, quant, workshop_tools(output.progress()))
    options.save(info, out)
    rows = [
        (i18n.text("row.file"), info.path),
        (i18n.text("row.size"), show_size(info.size_bytes)),
        ("SHA-256", info.sha256),
        (i18n.text("row.arch"), f"{info.architecture} ({i18n.text('plan.task.' + info.task)})"),
        (i18n.text("row.quantization"), info.quantization),
        (i18n.text("row.parameters"), f"{info.parameters / 1e6:.1f} M"),
        (i18n.text("row.layers"), f"{info.layers} × {info.embedding_length}"),
        (i18n.text("row.context"), str(info.context_length)),
        (i18n.text("row.tokenizer"), f"{info.tokenizer}, {info.vocabulary}"),
        (i18n.text("row.pooling"), info.pooling or "-"),
        (i18n.text("row.licence"), info.licence or i18n.text("word.unknown")),
        (i18n.text("row.golden"), info.golden_path or i18n.text(info.golden_note or "cli.weights.no-golden")),
    ]
    output.print_value(info, lambda: output.facts_table(info.name, rows))
