"""The part of ``sampan weights import`` that writes ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sampan import i18n
from sampan.cli import output

if TYPE_CHECKING:
    from sampan.spec.onnx import OnnxInfo


def run(source: str, kind: str, torch: str, out: Path | None) -> None:
    """Import, copy to ``out`` where it is named, show."""
    from sampan.flow.onnx_import import import_onnx
    from sampan.flow.tools import workshop_tools

    info, made = import_onnx(source, kind, workshop_tools(output.progress()), torch=torch)
    place = made if out is None else _copied(info, made, out.absolute())
    output.print_value(info, lambda: output.facts_table(info.name, _rows(info, place)))


def _copied(info: OnnxInfo, made: Path, out: Path) -> Path:
    """The facts last: where they are, all is there. Raises FilesystemError."""
    from sampan.edge.files import copy_atomically

    for name in (info.file_name, *info.external, info.tokenizer, info.golden, "onnx.json"):
        copy_atomically(made / name, out / name)
    return out


def _rows(info: OnnxInfo, place: Path) -> list[tuple[str, str]]:
    from rich.markup import escape

    from sampan.cli.sizes import show_size

    after = i18n.text("word.normalized" if info.normalize else "word.not-normalized")
    return [
        (i18n.text("row.folder"), escape(str(place))),
        (i18n.text("row.size"), show_size(info.size_bytes)),
        ("SHA-256", info.sha256),
        (i18n.text("row.arch"), f"{info.architecture}, opset {info.opset}"),
        (i18n.text("row.layers"), f"{info.layers} × {info.embedding_length}"),
        (i18n.text("row.context"), str(info.longest_text)),
        (i18n.text("row.pooling"), f"{info.pooling}, {after}"),
        (i18n.text("row.licence"), escape(info.licence or i18n.text("word.unknown"))),
        (i18n.text("row.inputs"), ", ".join(info.inputs)),
        (i18n.text("row.outputs"), info.output),
        (i18n.text("row.golden"), i18n.text("note.onnx_checked", cosine=f"{info.cosine:.6f}", by=info.checked_by)),
    ]
