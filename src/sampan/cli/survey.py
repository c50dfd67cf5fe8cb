"""``sampan survey``: what a target is: known, at hand, pasted, or reached by ssh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output
from sampan.errors import UsageError

if TYPE_CHECKING:
    from sampan.spec.target import TargetProfile


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, survey, options.STAGES)


def survey(
    target: str = typer.Argument("this", help=i18n.text("cli.opt.survey"), autocompletion=options.target_names),
    list_known: bool = typer.Option(False, "--list", help=i18n.text("cli.opt.list")),
    script: bool = typer.Option(False, "--script", help=i18n.text("cli.opt.script")),
    read: str | None = typer.Option(None, "--read", metavar="FILE|-", help=i18n.text("cli.opt.read")),
    diff: tuple[str, str] | None = typer.Option(None, "--diff", metavar="A B", help=i18n.text("cli.opt.diff")),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Show one profile, or the names of all."""
    from sampan.cli import survey_lines

    if sum((list_known, script, read is not None, diff is not None)) > 1:
        raise UsageError("survey.one-of")
    if list_known:
        survey_lines.known()
    elif script:
        _script()
    elif diff:
        survey_lines.differences(*diff, *(_profile(side) for side in diff))
    else:
        profile = _pasted(read) if read else _profile(target)
        options.save(profile, out)
        output.print_value(profile, lambda: survey_lines.facts(profile))


def _script() -> None:
    from sampan.survey.script import text

    typer.echo(text(), nl=False)


def _pasted(source: str) -> TargetProfile:
    from sampan.flow import surveys

    return surveys.pasted(source)


def _profile(target: str) -> TargetProfile:
    from sampan.flow import stages, surveys

    return surveys.here() if target == "this" else stages.survey(target)
