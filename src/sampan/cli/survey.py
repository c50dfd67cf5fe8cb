"""``sampan survey``: what a target is, known or at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.cli.sizes import show_size

if TYPE_CHECKING:
    from sampan.spec.target import TargetProfile


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, survey, options.STAGES)


def survey(
    target: str = typer.Argument("this", help=i18n.text("cli.opt.target"), autocompletion=options.target_names),
    list_known: bool = typer.Option(False, "--list", help=i18n.text("cli.opt.list")),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Show one profile, or the names of all."""
    from sampan.flow import stages
    from sampan.survey import known

    if list_known:
        _list(known.names())
        return
    profile = stages.survey(target)
    options.save(profile, out)
    output.print_value(profile, lambda: output.facts_table(profile.name, _rows(profile)))


def _list(names: tuple[str, ...]) -> None:
    from sampan.survey import known

    if output.wants_json():
        output.print_json({"schema": "sampan/targets/1", "targets": list(names)})
        return
    rows = [
        (name, profile.arch, profile.os.name, profile.cpu.model) for name in names for profile in (known.load(name),)
    ]
    output.console().print(output.facts_table(i18n.text("cli.survey.known"), rows))


def _rows(profile: TargetProfile) -> list[tuple[str, ...]]:
    """Unknown is said as unknown."""
    unknown = i18n.text("word.unknown")
    memory = show_size(profile.memory_bytes) if profile.memory_bytes else unknown
    floor = "" if profile.cpu.features_known else f" {i18n.text('cli.survey.floor')}"
    return [
        (i18n.text("row.system"), f"{profile.os.name} {profile.os.version}".strip()),
        (i18n.text("row.arch"), profile.arch),
        (i18n.text("row.page"), f"{profile.page_size >> 10} KiB"),
        ("CPU", profile.cpu.model),
        (i18n.text("row.features"), " ".join(profile.cpu.features) + floor),
        (i18n.text("row.cores"), str(profile.cpu.cores or unknown)),
        (i18n.text("row.memory"), memory),
        ("glibc", profile.libc.glibc or unknown),
        ("GLIBCXX", profile.libc.glibcxx or unknown),
        ("CXXABI", profile.libc.cxxabi or unknown),
        ("systemd", str(profile.systemd or unknown)),
        ("Python", profile.python or unknown),
        *(("GPU", f"{gpu.name} {gpu.compute_capability or ''}".strip()) for gpu in profile.gpus),
    ]
