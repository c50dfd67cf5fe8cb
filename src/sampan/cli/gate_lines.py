"""The gate's report as a table, on a terminal and in Markdown."""

from __future__ import annotations

from sampan import i18n
from sampan.cli.sizes import show_size
from sampan.spec.gate import GateReport, GateRow

_EMBEDDING = ("cosine_min", "cosine_mean", "overlap", "spearman")
_CHAT = ("kl_mean", "kl_p99", "same_top", "perplexity")


def headings(report: GateReport) -> tuple[str, ...]:
    """One word a column."""
    measures = _CHAT if report.task == "chat" else _EMBEDDING
    return (
        i18n.text("row.quantization"),
        i18n.text("row.size"),
        *(i18n.text(f"gate.measure.{name}") for name in measures),
        report.speed_unit,
        i18n.text("gate.verdict"),
    )


def rows(report: GateReport) -> list[tuple[str, ...]]:
    """One line a type, largest first."""
    measures = _CHAT if report.task == "chat" else _EMBEDDING
    return [
        (
            row.quantization,
            show_size(row.size_bytes),
            *(_number(getattr(row, name)) for name in measures),
            "-" if row.speed is None else f"{row.speed:.0f}",
            verdict(row, report),
        )
        for row in report.rows
    ]


def verdict(row: GateRow, report: GateReport) -> str:
    """Chosen, passed, or what it misses."""
    if row.refused:
        missed = ", ".join(i18n.text(f"gate.measure.{name}") for name in row.refused)
        said = i18n.text("gate.refused-for", measures=missed)
    else:
        said = i18n.text("gate.chosen" if row.quantization == report.chosen else "gate.passed")
    return said + (i18n.text("gate.fallbacks", count=row.fallbacks) if row.fallbacks else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}" if abs(value) < 10 else f"{value:.2f}"


def markdown(report: GateReport) -> str:
    """The same table for a file."""
    lines = [headings(report), tuple("---" for _ in headings(report)), *rows(report)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# {report.model}\n\n{note(report)}\n\n{table}\n"


def note(report: GateReport) -> str:
    """What was compared with what."""
    key = "gate.note.original" if report.base_is_original else "gate.note.unpacked"
    return i18n.text(key, base=report.base, engine=report.engine, texts=report.texts, threads=report.threads)
