"""A report as rows for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sampan import i18n
from sampan.spec.artefacts import AuditReport, Finding


@dataclass(frozen=True)
class Row:
    """One finding in the language in force; ``fix`` says what to do."""

    severity: str
    code: str
    path: str
    message: str
    fix: str


SEVERITIES = ("error", "warning", "info")


def at_least(findings: Sequence[Finding], severity: str) -> tuple[Finding, ...]:
    """The findings of that severity and worse."""
    wanted = SEVERITIES[: SEVERITIES.index(severity) + 1]
    return tuple(finding for finding in findings if finding.severity in wanted)


def rows(report: AuditReport, severity: str = "info") -> tuple[Row, ...]:
    """The findings of that severity and worse in the report's order, worst first."""
    return tuple(row(finding) for finding in at_least(report.findings, severity))


def row(finding: Finding) -> Row:
    """One finding."""
    values = dict(finding.values)
    return Row(
        severity=finding.severity,
        code=finding.code,
        path=finding.path,
        message=i18n.text(f"finding.{finding.code}", **values),
        fix=i18n.text(f"finding.{finding.code}.fix", **values),
    )


def summary(report: AuditReport) -> str:
    """One line: what was read, for which target, and how many findings."""
    warnings = sum(finding.severity == "warning" for finding in report.findings)
    return i18n.text(
        "audit.summary",
        subject=report.subject,
        target=report.target,
        files=report.files,
        elf=report.elf_files,
        errors=report.errors,
        warnings=warnings,
    )
