"""``sampan audit``: will these files run on that target? Reads, never executes."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.spec.artefacts import AuditReport

_MARKS = {"error": ("✗", "red"), "warning": ("!", "yellow"), "info": ("i", "cyan")}
_EXPLANATION = "sampan/explanation/1"


class Severity(str, Enum):
    """What ``--min-severity`` takes."""

    error = "error"
    warning = "warning"
    info = "info"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, audit, options.WORKSHOP)


def audit(
    paths: list[Path] = typer.Argument(None, help=i18n.text("cli.opt.paths"), metavar="PATH…"),
    target: options.Target = "this",
    private: bool = typer.Option(False, "--runtime", help=i18n.text("cli.opt.audit-runtime")),
    gpu: list[str] = typer.Option([], "--gpu", help=i18n.text("cli.opt.gpu"), metavar="CARD[@DRIVER]"),
    min_severity: Severity = typer.Option(
        Severity.warning, "--min-severity", "-s", help=i18n.text("cli.opt.min-severity")
    ),
    strict: bool = typer.Option(False, "--strict", help=i18n.text("cli.opt.strict")),
    explain: str = typer.Option("", "--explain", help=i18n.text("cli.opt.explain"), metavar="CODE"),
    list_codes: bool = typer.Option(False, "--list-codes", help=i18n.text("cli.opt.list-codes")),
    out: options.SaveTo = None,
    json: options.Json = False,
) -> None:
    """Exit code 4 where there is an error; with ``--strict`` 12 where there are warnings only."""
    from sampan.errors import ExitCode, UsageError
    from sampan.flow import stages
    from sampan.flow.tools import workshop_tools

    if explain or list_codes:
        _explain(explain)
        return
    if not paths:
        raise UsageError("audit.no-paths")
    profile = stages.survey(target)
    if gpu:
        profile = replace(profile, gpus=tuple(map(stages.gpu, gpu)))
    report = stages.audit(paths, profile, workshop_tools(output.progress()), private=private)
    options.save(report, out)
    _show(report, min_severity.value)
    if report.errors:
        raise SystemExit(int(ExitCode.INCOMPATIBLE))
    if strict and any(finding.severity == "warning" for finding in report.findings):
        raise SystemExit(int(ExitCode.WARNINGS))


def _show(report: AuditReport, severity: str) -> None:
    from sampan.audit.render import at_least, summary

    wanted = at_least(report.findings, severity)
    hidden = len(report.findings) - len(wanted)
    more = [f"\n{i18n.text('audit.hidden', count=hidden)}"] if hidden else []
    shown = replace(report, findings=wanted)
    output.print_value(shown, lambda: "\n".join((summary(report), *_lines(shown), *more)))


def _lines(report: AuditReport) -> list[str]:
    """A finding: where and which, what it is, what to do."""
    from sampan.audit.render import rows

    lines = []
    for row in rows(report):
        mark, colour = _MARKS[row.severity]
        lines += [f"\n[{colour}]{mark} {row.code}[/]  [bold]{escape(row.path)}[/]", f"  {escape(row.message)}"]
        lines += [f"  [dim]→ {escape(row.fix)}[/]"] if row.fix else []
    return lines


def _explain(code: str) -> None:
    """One code in full, or all of them by name and message."""
    from sampan.audit.explain import codes
    from sampan.audit.explain import explain as said

    if not code:
        _list(codes())
        return
    found = said(code, i18n.language())
    parts = {"cause": found.cause, "proof": found.proof, "fix": found.fix}
    if output.wants_json():
        output.print_json({"schema": _EXPLANATION, "code": code, **parts})
        return
    console = output.console()
    console.print(f"[bold]{code}[/]")
    for part, text in parts.items():
        console.print(f"\n[bold cyan]{i18n.text(f'audit.explain.{part}')}[/]")
        console.print(text, markup=False)


def _list(codes: tuple[str, ...]) -> None:
    if output.wants_json():
        output.print_json({"schema": "sampan/codes/1", "codes": list(codes)})
    else:
        for code in codes:
            output.console().print(code, markup=False)
