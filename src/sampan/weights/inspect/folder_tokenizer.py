"""The tokenizer and the chat templates of a model folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sampan.spec.model_report import ReportTemplate
from sampan.weights.files import member, read_object, read_text
from sampan.weights.inspect import template
from sampan.weights.inspect.support import pre_tokenizer_of


@dataclass(frozen=True)
class FolderTokenizer:
    """``kind``: WordPiece, Unigram, BPE… or the file that stands for one; ``pre`` only for byte pairs."""

    kind: str | None
    pre: str | None
    byte_pairs: bool


def read_tokenizer(model: Path) -> FolderTokenizer:
    """Read tokenizer.json, else name what is there instead. Raises BadInputError."""
    path = model / "tokenizer.json"
    if not path.is_file():
        known = ("tokenizer.model", "sentencepiece.bpe.model", "spiece.model", "vocab.txt", "vocab.json")
        return FolderTokenizer(next((name for name in known if (model / name).is_file()), None), None, False)
    described = member(read_object(path), "model")
    kind = described.get("type")
    # With byte fallback it is SentencePiece's kind of pairs, for which the engine has no pre-tokenizer.
    byte_pairs = kind == "BPE" and described.get("byte_fallback") is not True
    return FolderTokenizer(
        str(kind) if isinstance(kind, str) else None, pre_tokenizer_of(path) if byte_pairs else None, byte_pairs
    )


def refuse_hostile_templates(model: Path) -> None:
    """Raise BadInputError where a chat template of the folder holds what only an attack needs."""
    template.refuse_hostile(model, templates_of(model))


def templates_of(model: Path) -> Iterator[ReportTemplate]:
    """Those of tokenizer_config.json, of chat_template.jinja and chat_template.json, and of the additional ones."""
    path = model / "tokenizer_config.json"
    if path.is_file():
        stated = read_object(path).get("chat_template")
        for entry in stated if isinstance(stated, list) else [{"name": "default", "template": stated}]:
            source = entry.get("template") if isinstance(entry, dict) else None
            if isinstance(source, str):
                yield template.examine(str(entry.get("name", "default")), path.name, source)
    path = model / "chat_template.json"
    if path.is_file():
        source = read_object(path).get("chat_template")
        if isinstance(source, str):
            yield template.examine("default", path.name, source)
    for path in [model / "chat_template.jinja", *sorted((model / "additional_chat_templates").glob("*.jinja"))]:
        if path.is_file():
            name = "default" if path.parent == model else path.stem
            yield template.examine(name, str(path.relative_to(model)), read_text(path))
