"""``sampan plan``: whether it fits, how it will run, and why."""

from __future__ import annotations

import typer

from sampan import i18n
from sampan.cli import options, output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, plan, options.STAGES)


def plan(
    weights: options.Weights,
    target: options.Target,
    name: options.Name = None,
    release: options.Release = 1,
    quant: options.Quantization = "auto",
    memory: options.Memory = None,
    cores: options.Cores = None,
    concurrency: options.Concurrency = None,
    max_tokens: options.MaxTokens = None,
    kv_type: options.KvType = None,
    lock: options.Lock = False,
    port: options.Port = 8080,
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Print settings, reasons and the memory table."""
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools
    from sampan.plan import summary

    profile = stages.survey(target)
    info = stages.weights(weights, quant, workshop_tools(output.progress()))
    limits = options.limits(memory, cores, concurrency, max_tokens, port)
    made = stages.plan(info, profile, {**limits, "name": name, "release": release, "kv_type": kv_type, "lock": lock})
    options.save(made, out)
    output.print_value(made, lambda: output.facts_table(made.name, summary.rows(made)))
    if not output.wants_json():
        output.console().print(output.facts_table(i18n.text("cli.plan.memory"), summary.memory_rows(made)))
        for note in summary.notes(made):
            output.console().print(f"• {note}", markup=False, highlight=False)
