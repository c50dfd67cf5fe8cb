"""A ModelReport as rows for people: what is not known is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.markup import escape

from sampan import i18n
from sampan.cli.sizes import show_size

if TYPE_CHECKING:
    from sampan.spec.model_report import ModelReport, ReportFile, ReportTemplate, ReportTensor
    from sampan.spec.plan import Reason

_MOST_FILES = 12
_COLOURS = {"loads": "green", "imports": "green", "converts": "yellow", "no": "red"}

Rows = Iterator[tuple[str, str]]


def rows(report: ModelReport) -> list[tuple[str, str]]:
    """Label and text; the text is safe to print as markup."""
    return [*_what(report), *_shape(report), *_words(report), *_tensors(report), *_files(report), *_notes(report)]


def _what(report: ModelReport) -> Rows:
    yield _row("row.file", report.path)
    yield _row("row.format", report.format)
    yield _row("row.size", show_size(report.size_bytes))
    if report.architecture:
        task = f" ({i18n.text('plan.task.' + report.task)})" if report.task else ""
        yield _row("row.arch", report.architecture + task)
    support = report.support
    said = escape(i18n.text(f"support.{support.verdict}", engine=support.engine, version=support.version))
    yield i18n.text("row.engine"), f"[{_COLOURS[support.verdict]}]{said}[/]"
    for reason in support.reasons:
        yield _row("row.because", _reason(reason))


def _shape(report: ModelReport) -> Rows:
    if report.numbers:
        yield _row("row.quantization", report.numbers)
    if report.parameters:
        yield _row("row.parameters", _count(report.parameters))
    if report.layers:
        yield _row("row.layers", f"{report.layers} × {report.embedding_length or '?'}")
    if report.heads:
        yield _row("row.heads", i18n.text("line.heads", heads=report.heads, kv_heads=report.kv_heads or report.heads))
    if report.context_length:
        key = "line.context-longest" if report.longest_text else "line.context"
        yield _row("row.context", i18n.text(key, context=report.context_length, longest=report.longest_text))


def _count(number: int) -> str:
    return f"{number / 1e6:.1f} M" if number >= 100_000 else str(number)


def _words(report: ModelReport) -> Rows:
    tokenizer = [part for part in (report.tokenizer, report.tokenizer_pre, str(report.vocabulary or "")) if part]
    if tokenizer:
        yield _row("row.tokenizer", ", ".join(tokenizer))
    if report.pooling:
        after = {True: "word.normalized", False: "word.not-normalized"}.get(bool(report.normalize))
        stated = f", {i18n.text(after)}" if after and report.normalize is not None else ""
        yield _row("row.pooling", report.pooling + stated)
    if report.query_prefix or report.passage_prefix:
        yield _row(
            "row.prefixes", i18n.text("line.prefixes", query=report.query_prefix, passage=report.passage_prefix)
        )
    if report.prompts:
        yield _row("row.prompts", ", ".join(name for name, _ in report.prompts))
    for template in report.templates:
        yield from _template(template)
    yield _row("row.licence", report.licence or i18n.text("word.unknown"))


def _template(template: ReportTemplate) -> Rows:
    shown = i18n.text("line.template", name=template.name, origin=template.origin, characters=template.characters)
    yield _row("row.template", shown)
    for finding in template.findings:
        yield "", f"[red]✗ {escape(_reason(finding))}[/]"


def _tensors(report: ModelReport) -> Rows:
    for key, tensors in (("row.inputs", report.inputs), ("row.outputs", report.outputs)):
        if tensors:
            yield _row(key, "; ".join(map(_tensor, tensors)))
    if report.made_by:
        yield _row("row.made-by", report.made_by)


def _tensor(tensor: ReportTensor) -> str:
    return f"{tensor.name} {tensor.dtype}[{', '.join(tensor.shape)}]"


def _files(report: ModelReport) -> Rows:
    largest = sorted(report.files, key=lambda file: -file.size_bytes)[:_MOST_FILES]
    for file in largest:
        yield "", f"[dim]{escape(_file(file))}[/]"
    if len(report.files) > len(largest):
        yield "", f"[dim]… {len(report.files)}[/]"


def _file(file: ReportFile) -> str:
    return f"{file.sha256 or i18n.text('line.not-hashed')}  {show_size(file.size_bytes)}  {file.path}"


def _notes(report: ModelReport) -> Rows:
    for note in report.notes:
        yield _row("row.note", _reason(note))


def _reason(reason: Reason) -> str:
    return i18n.text(reason.key, **dict(reason.values))


def _row(key: str, value: str) -> tuple[str, str]:
    return i18n.text(key), escape(value)
