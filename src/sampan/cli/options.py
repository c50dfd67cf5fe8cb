"""Options that several verbs share. Help texts are looked up when this is imported: the language is set by then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sampan import i18n
from sampan.cli.output import handled, use_json
from sampan.cli.words import Verb
from sampan.errors import UsageError
from sampan.plan import options as plan_options

if TYPE_CHECKING:
    from sampan.spec.artefacts import AuditReport

WORKSHOP = i18n.text("cli.panel.workshop")
STAGES = i18n.text("cli.panel.stages")
TARGET_PANEL = i18n.text("cli.panel.target")


def _json(wanted: bool) -> bool:
    use_json(wanted)
    return wanted


def target_names(incomplete: str) -> list[str]:
    """Shell completion of known targets."""
    from sampan.survey import known

    return [name for name in (*known.names(), "this") if name.startswith(incomplete)]


def within(option: str, lowest: int, highest: int) -> Callable[[int | None], int | None]:
    """A check of an option's number. Raises UsageError that names both bounds."""

    def check(value: int | None) -> int | None:
        if value is not None and not lowest <= value <= highest:
            raise UsageError("cli.bound", option=option, value=value, lowest=lowest, highest=highest)
        return value

    return check


def filled(option: str) -> Callable[[str | None], str | None]:
    """A check that an option has a value. Raises UsageError for an empty one."""

    def check(value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise UsageError("cli.empty", option=option)
        return value

    return check


def _kv_type(value: str | None) -> str | None:
    """Raises UsageError ``plan.kv-type``."""
    if value is not None and value not in plan_options.KV_TYPES:
        raise UsageError("plan.kv-type", asked=value, known=", ".join(plan_options.KV_TYPES))
    return value


Json = Annotated[bool, typer.Option("--json", help=i18n.text("cli.opt.json"), callback=_json, is_eager=True)]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        help=i18n.text("cli.opt.target"),
        autocompletion=target_names,
        metavar="T",
        callback=filled("--target"),
    ),
]
Weights = Annotated[
    str, typer.Option("--weights", "-w", help=i18n.text("cli.opt.weights"), metavar="W", callback=filled("--weights"))
]
Quantization = Annotated[str, typer.Option("--quant", "--quantization", help=i18n.text("cli.opt.quant"))]
Name = Annotated[str | None, typer.Option("--name", "-n", help=i18n.text("cli.opt.name"), callback=filled("--name"))]
Release = Annotated[
    int,
    typer.Option(
        "--release", help=i18n.text("cli.opt.release"), callback=within("--release", 1, plan_options.RELEASE_MOST)
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help=i18n.text("cli.opt.out"), file_okay=False)]
SaveTo = Annotated[Path | None, typer.Option("--out", "-o", help=i18n.text("cli.opt.save"))]
Memory = Annotated[str | None, typer.Option("--memory", help=i18n.text("cli.opt.memory"))]
Cores = Annotated[
    int | None,
    typer.Option("--cores", help=i18n.text("cli.opt.cores"), callback=within("--cores", 1, plan_options.CORES_MOST)),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        help=i18n.text("cli.opt.concurrency"),
        callback=within("--concurrency", 1, plan_options.SLOTS_MOST),
    ),
]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help=i18n.text("cli.opt.max-tokens"))]
KvType = Annotated[str | None, typer.Option("--kv-type", help=i18n.text("cli.opt.kv-type"), callback=_kv_type)]
Lock = Annotated[bool, typer.Option("--lock", help=i18n.text("cli.opt.lock"))]
Port = Annotated[int, typer.Option("--port", min=1, max=65535, help=i18n.text("cli.opt.port"))]


def add(app: typer.Typer, verb: Callable[..., None], panel: str) -> None:
    """Register a verb under its function's name; help and examples come from ``cli.<name>.help`` and ``.epilog``."""
    name = verb.__name__
    epilog = i18n.text(f"cli.{name}.epilog")
    app.command(name, cls=Verb, help=i18n.text(f"cli.{name}.help"), epilog=epilog, rich_help_panel=panel)(
        handled(verb)
    )


def add_to(group_name: str, group: typer.Typer, verb: Callable[..., None]) -> None:
    """Register a verb of a group (``weights inspect``); texts from ``cli.<group>.<verb>.help`` and ``.epilog``."""
    key = f"cli.{group_name}.{verb.__name__}"
    group.command(verb.__name__, cls=Verb, help=i18n.text(f"{key}.help"), epilog=i18n.text(f"{key}.epilog"))(
        handled(verb)
    )


def save(value: Any, path: Path | None) -> None:
    """Write a stage's artefact where the user asked for it. Raises FilesystemError."""
    from sampan.edge.files import write_atomically
    from sampan.spec.codec import to_json

    if path is not None:
        write_atomically(path, to_json(value).encode())


def limits(
    memory: str | None, cores: int | None, concurrency: int | None, max_tokens: int | None, port: int
) -> dict[str, int | None]:
    """The plan's options that ``ship`` and ``plan`` share, by PlanOptions' names. Raises UsageError."""
    return {
        "memory_bytes": None if memory is None else _memory(memory),
        "cores": cores,
        "concurrency": concurrency,
        "max_tokens": max_tokens,
        "port": port,
    }


def _memory(text: str) -> int:
    from sampan.cli.sizes import parse_size

    size = parse_size(text)
    if not plan_options.MEMORY_LEAST <= size <= plan_options.MEMORY_MOST:
        raise UsageError("cli.bound", option="--memory", value=text, lowest="16M", highest="64T")
    return size


def audit_counts(report: AuditReport) -> dict[str, int]:
    """The numbers of ``line.audit``."""
    warnings = sum(finding.severity == "warning" for finding in report.findings)
    return {"files": report.files, "elf": report.elf_files, "errors": report.errors, "warnings": warnings}
