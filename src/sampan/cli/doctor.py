"""``sampan doctor``: why it failed, from what was printed or from the machine itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.doctor.model import Diagnosis, Evidence, Finding

_MARKS = {"error": ("✗", "red"), "warning": ("!", "yellow"), "info": ("i", "cyan")}


def register(app: typer.Typer) -> None:
    """Add the verb, with the target's: it travels in every bundle."""
    options.add(app, doctor, options.TARGET_PANEL)


def doctor(
    files: list[str] = typer.Argument(None, help=i18n.text("cli.opt.doctor-files"), metavar="[FILE…|-]"),
    target: str | None = typer.Option(
        None,
        "--target",
        "-t",
        help=i18n.text("cli.opt.doctor-target"),
        autocompletion=options.target_names,
        metavar="T",
    ),
    here: bool = typer.Option(False, "--here", help=i18n.text("cli.opt.here")),
    list_cases: bool = typer.Option(False, "--list", help=i18n.text("cli.opt.doctor-list")),
    explain: str | None = typer.Option(None, "--explain", help=i18n.text("cli.opt.explain"), metavar="CODE"),
    json: options.Json = False,
) -> None:
    """Exit code 0 whenever it could look, whatever it found."""
    from sampan.flow import doctoring

    if list_cases:
        _list()
    elif explain:
        _explain(explain)
    else:
        found = doctoring.diagnose(files or (), target=target, here=here)
        output.print_value(found, lambda: "\n".join(_lines(found)))


def _list() -> None:
    from sampan.doctor import explain, knowledge

    cases = sorted(knowledge.cases().values(), key=lambda case: case.code)
    if output.wants_json():
        rows = [{"code": case.code, "severity": case.severity, "what": explain.title(case)} for case in cases]
        output.print_json({"schema": "sampan/doctor-list/1", "cases": rows})
        return
    table = [(case.code, escape(explain.title(case))) for case in cases]
    output.console().print(output.facts_table(i18n.text("doctor.list.title", count=len(cases)), table))


def _explain(code: str) -> None:
    from sampan.doctor import explain, knowledge

    case = knowledge.case(code)
    if output.wants_json():
        output.print_json({"schema": "sampan/doctor-case/1", "code": code, "page": explain.page(case)})
    else:
        output.console().print(explain.page(case), markup=False)


def _lines(found: Diagnosis) -> Iterator[str]:
    """The findings as people read them, the most telling first."""
    if found.known:
        yield i18n.text("doctor.summary", causes=len(found.known), lines=found.lines)
    else:
        yield i18n.text("doctor.none", lines=found.lines)
    for finding in found.findings:
        yield from _finding(finding) if finding.role == "cause" else _aside(finding)
    if found.unknown:
        yield ""
        yield f"[yellow]{i18n.text('doctor.unknown')}[/]"
        yield from (_evidence(line) for line in found.unknown)
        yield i18n.text("doctor.unknown-next")
    elif not found.known:
        yield i18n.text("doctor.none-next")
    if found.left_out:
        yield ""
        yield f"[yellow]{i18n.text('doctor.left-out', count=found.left_out)}[/]"


def _finding(finding: Finding) -> Iterator[str]:
    from sampan.doctor.scan import MOST_HITS

    mark, colour = _MARKS[finding.severity]
    kind = (
        f"{i18n.text(f'doctor.severity.{finding.severity}')}, {i18n.text(f'doctor.confidence.{finding.confidence}')}"
    )
    yield ""
    yield f"[{colour}]{mark} {finding.code}[/] [dim]({kind})[/]  [bold]{escape(finding.what)}[/]"
    if finding.status == "no-fix":
        yield f"  [yellow]{i18n.text('doctor.no-fix')}[/]"
    if len(finding.causes) > 1:
        for cause in finding.causes:
            yield _row("possible", cause.cause)
            yield _row("prove", cause.prove)
            yield _row("fix", cause.fix)
    else:
        yield _row("cause", finding.cause)
        yield from (_row("decided", cause.decided_by) for cause in finding.causes if cause.decided_by)
        yield _row("prove", finding.prove)
        yield _row("fix", finding.fix)
    if finding.avoid:
        yield _row("avoid", finding.avoid)
    many = "doctor.times" if finding.times <= MOST_HITS else "doctor.times-at-least"
    more = f" ({i18n.text(many, count=finding.times)})" if finding.times > len(finding.evidence) else ""
    yield f"  [cyan]{i18n.text('doctor.label.evidence')}{more}[/]"
    yield from (_evidence(line) for line in finding.evidence)
    yield f"  [dim]{i18n.text('doctor.label.source')}: {escape(', '.join(finding.source))}[/]"


def _aside(finding: Finding) -> Iterator[str]:
    """What follows from another finding, or misleads."""
    yield ""
    yield f"[dim]· {finding.code}  {i18n.text(f'doctor.{finding.role}', code=finding.because)}[/]"
    yield from (f"[dim]{_evidence(line)}[/]" for line in finding.evidence[:2])


def _row(label: str, text: str) -> str:
    return f"  [cyan]{i18n.text(f'doctor.label.{label}')}[/] {escape(text)}"


def _evidence(line: Evidence) -> str:
    where = f"{line.source}:{line.line}" if line.line else line.source
    return f"    {escape(where)}: {escape(line.text)}"
