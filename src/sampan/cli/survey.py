"""``sampan survey``: what a target is: known, at hand, pasted, or reached by ssh."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.errors import UsageError

if TYPE_CHECKING:
    from sampan.flow.tools import Tools


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, survey, options.STAGES)


def survey(
    target: str = typer.Argument("this", help=i18n.text("cli.opt.survey"), autocompletion=options.target_names),
    list_known: bool = typer.Option(False, "--list", help=i18n.text("cli.opt.list")),
    script: bool = typer.Option(False, "--script", help=i18n.text("cli.opt.script")),
    probe: bool = typer.Option(False, "--probe", help=i18n.text("cli.opt.probe")),
    read: str | None = typer.Option(None, "--read", metavar="FILE|-", help=i18n.text("cli.opt.read")),
    diff: tuple[str, str] | None = typer.Option(None, "--diff", metavar="A B", help=i18n.text("cli.opt.diff")),
    jump: str | None = typer.Option(None, "--jump", metavar="USER@HOST:PORT", help=i18n.text("cli.opt.jump")),
    identity: list[Path] = typer.Option([], "--identity", metavar="FILE", help=i18n.text("cli.opt.identity")),
    accept: str | None = typer.Option(
        None, "--accept-host-key", metavar="SHA256:…", help=i18n.text("cli.opt.accept")
    ),
    timeout: float = typer.Option(15.0, "--timeout", min=0.1, help=i18n.text("cli.opt.timeout")),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Show one profile, or the names of all."""
    from sampan.cli import survey_facts, survey_lines
    from sampan.flow import surveys

    if sum((list_known, script, read is not None, diff is not None)) > 1:
        raise UsageError("survey.one-of")
    if probe and (list_known or read is not None or diff is not None):
        raise UsageError("survey.probe-where", target="--list/--read/--diff")
    way, tools = surveys.Way(jump, tuple(identity), accept, timeout), _tools() if probe else None
    if list_known:
        survey_lines.known()
    elif script:
        typer.echo(surveys.script(tools), nl=False)
    elif diff:
        survey_lines.differences(*diff, *(surveys.profile(side, way) for side in diff))
    else:
        profile = surveys.pasted(read) if read else surveys.profile(target, way, tools)
        options.save(profile, out)
        output.print_value(profile, lambda: survey_facts.facts(profile))


def _tools() -> Tools:
    """Raises UsageError where the probe cannot be made: a bundle has no compiler."""
    from sampan.cli.entry import on_target
    from sampan.flow.tools import workshop_tools

    if on_target():
        raise UsageError("survey.probe-workshop", command="sampan survey --script --probe")
    return workshop_tools(output.progress())
