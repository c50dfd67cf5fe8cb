"""What sentence-transformers and the model card write around an encoder: steps, pooling, prompts, licence."""

from __future__ import annotations

import re
from pathlib import Path

from sampan.errors import BadInputError
from sampan.weights.files import member, read_json, read_object, read_text

_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
}
_POOLING_NAMES = {"mean": "mean", "cls": "cls", "lasttoken": "last"}
_PASSAGE_PROMPTS, _QUERY_PROMPTS = ("passage", "document"), ("query",)
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_LICENCE = re.compile(r"^license:[ \t]*(?:\n?[ \t]*-[ \t]*)?[\"']?([A-Za-z0-9.+_-]+)", re.MULTILINE)


def modules_of(root: Path, *, every: bool = False) -> dict[str, str]:
    """sentence-transformers' steps: the last word of the type -> folder; empty for a plain Hugging Face folder.

    Raises BadInputError, also for a step that cannot be imported, unless ``every`` is wanted.
    """
    path = root / "modules.json"
    if not path.is_file():
        return {}
    entries = read_json(path)
    found: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else [entries]:
        kind, folder = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(folder, str):
            raise BadInputError("weights.config", path=str(path), detail=repr(entry)[:80])
        name = kind.rpartition(".")[2]
        if not every and name not in ("Transformer", "Pooling", "Normalize"):
            raise BadInputError("weights.unsupported", path=str(path), what="module", value=name)
        found[name] = folder
    return found


def pooling_of(folder: Path) -> str:
    """mean, cls or last, from the pooling step's config.json. Raises BadInputError."""
    path = folder / "config.json"
    if not path.is_file():
        raise BadInputError("weights.shard_missing", path=str(folder.parent), shard=f"{folder.name}/{path.name}")
    config = read_object(path)
    chosen = [name for key, name in _POOLINGS.items() if config.get(key) is True]
    named = _POOLING_NAMES.get(str(config.get("pooling_mode")))
    if not chosen and named:
        return named
    others = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    if len(chosen) != 1 or len(others) != 1:
        raise BadInputError("weights.unsupported", path=str(path), what="pooling", value=", ".join(others) or "-")
    return chosen[0]


def sentence_config_of(model: Path) -> dict[str, object]:
    """sentence_bert_config.json: the longest text and casing; empty where there is none."""
    path = model / "sentence_bert_config.json"
    return read_object(path) if path.is_file() else {}


def prompts_of(root: Path) -> tuple[str, str]:
    """The prefixes that the model wants before a query and before a passage."""
    path = root / "config_sentence_transformers.json"
    prompts = member(read_object(path), "prompts") if path.is_file() else {}
    words = {name: value for name, value in prompts.items() if isinstance(value, str)}
    query = next((words[name] for name in _QUERY_PROMPTS if name in words), "")
    return query, next((words[name] for name in _PASSAGE_PROMPTS if name in words), "")


def licence_of(root: Path) -> str | None:
    """The licence that the model card's front matter names."""
    path = root / "README.md"
    front = _FRONT_MATTER.match(read_text(path)) if path.is_file() else None
    found = _LICENCE.search(front.group(1)) if front else None
    return found.group(1) if found else None
