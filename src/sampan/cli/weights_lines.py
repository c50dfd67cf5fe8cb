"""What a model is, line by line."""

from __future__ import annotations

from sampan import i18n
from sampan.cli.sizes import show_size
from sampan.spec.weights import WeightsInfo


def rows(info: WeightsInfo) -> list[tuple[str, str]]:
    """Label and value."""
    return [
        (i18n.text("row.file"), info.path),
        (i18n.text("row.size"), show_size(info.size_bytes)),
        ("SHA-256", info.sha256),
        (i18n.text("row.arch"), f"{info.architecture} ({i18n.text('plan.task.' + info.task)})"),
        (i18n.text("row.quantization"), info.quantization),
        (i18n.text("row.parameters"), f"{info.parameters / 1e6:.1f} M"),
        (i18n.text("row.layers"), f"{info.layers} × {info.embedding_length}"),
        (i18n.text("row.context"), str(info.context_length)),
        (i18n.text("row.tokenizer"), f"{info.tokenizer}, {info.vocabulary}"),
        (i18n.text("row.pooling"), info.pooling or "-"),
        (i18n.text("row.licence"), info.licence or i18n.text("word.unknown")),
        (i18n.text("row.golden"), info.golden_path or i18n.text(info.golden_note or "cli.weights.no-golden")),
    ]
