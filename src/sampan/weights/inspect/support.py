"""What the pinned engine makes of a model: pure decisions over its own lists."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sampan.errors import BadInputError
from sampan.spec.model_report import EngineSupport
from sampan.spec.plan import Reason
from sampan.weights.facts import conversion_table, engine_table
from sampan.weights.folder import read_folder
from sampan.weights.gguf_checks import missing_support
from sampan.weights.gguf_header import GgufHeader
from sampan.weights.reference.tokenizer import from_file


def of_gguf(header: GgufHeader) -> EngineSupport:
    """Architecture, tokenizer and pre-tokenizer against the engine's lists."""
    architecture = header.fields.get("general.architecture")
    reasons = tuple(Reason(f"support.{what}", (("value", value),)) for what, value in missing_support(header))
    return _made("no" if reasons else "loads", architecture if isinstance(architecture, str) else None, reasons)


def of_folder(root: Path, classes: tuple[str, ...], pre: str | None, byte_pairs: bool) -> EngineSupport:
    """``classes`` as config.json names them; ``pre`` as ``pre_tokenizer_of`` found it."""
    known = conversion_table().classes
    architecture = next((known[name] for name in classes if name in known), None)
    if architecture is None:
        return _made("no", None, (Reason("support.class", (("value", ", ".join(classes) or "-"),)),))
    if architecture not in engine_table().architectures:
        return _made("no", architecture, (Reason("support.architecture", (("value", architecture),)),))
    if byte_pairs and pre is None:
        return _made("no", architecture, (Reason("support.pre_unknown"),))
    try:
        read_folder(root)
    except BadInputError as error:
        if error.key == "weights.class":  # not one that sampan writes itself
            return _made("converts", architecture, ())
        if error.key != "weights.unsupported":
            raise
        return _made("no", architecture, (Reason("support.import", (("detail", error.message),)),))
    return _made("imports", architecture, ())


def other(what: str) -> EngineSupport:
    """A format that this engine does not read at all: ``onnx`` or ``paddle``."""
    return _made("no", None, (Reason(f"support.{what}"),))


def pre_tokenizer_of(tokenizer: Path) -> str | None:
    """The engine's name for how this tokenizer cuts a text before byte pairs; None where it knows none.

    As the pinned converter does it: the ids of one text full of traps are hashed. Raises BadInputError.
    """
    table = conversion_table()
    ids = from_file(tokenizer).encode(table.probe).ids
    return table.pre_tokenizers.get(hashlib.sha256(str(ids).encode()).hexdigest())


def _made(verdict: str, architecture: str | None, reasons: tuple[Reason, ...]) -> EngineSupport:
    table = engine_table()
    return EngineSupport(table.engine, f"{table.package} {table.version}", verdict, architecture, reasons)
