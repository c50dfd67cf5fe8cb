"""ModelReport: what a model says of itself, read without running anything of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sampan.spec.plan import Reason


@dataclass(frozen=True)
class ReportFile:
    """One file of the model; ``sha256`` None where it was not read (large, and ``--hash`` was not given)."""

    path: str  # relative to the model's folder
    size_bytes: int
    sha256: str | None = None


@dataclass(frozen=True)
class ReportTemplate:
    """One chat template. ``findings``: what no honest template does, by catalogue keys ``template.…``."""

    name: str  # default, tool_use…
    origin: str  # the GGUF's key or the file
    characters: int
    sha256: str
    findings: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class ReportTensor:
    """An input or output of a graph; a dimension that is open has its name or ``-1``."""

    name: str
    dtype: str
    shape: tuple[str, ...]


@dataclass(frozen=True)
class EngineSupport:
    """What the pinned engine makes of it.

    ``verdict``: ``loads`` (a GGUF that it takes), ``imports`` (a folder that sampan makes a GGUF of), ``converts`` (a
    class that the engine's own converter knows, sampan's import does not), ``no``.
    """

    engine: str
    version: str
    verdict: str
    architecture: str | None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class ModelReport:
    """Sizes in bytes, lengths in tokens; None where the model does not say."""

    SCHEMA: ClassVar[str] = "sampan/model-report/1"

    path: str
    format: str  # gguf, huggingface, sentence-transformers, onnx, paddle
    name: str
    files: tuple[ReportFile, ...]
    size_bytes: int
    support: EngineSupport
    architecture: str | None = None  # GGUF's name, or the class in config.json
    task: str | None = None  # embedding, chat or rerank
    numbers: str | None = None  # what the weights are stored as: Q4_1, BF16…
    parameters: int | None = None
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    embedding_length: int | None = None
    feed_forward_length: int | None = None
    context_length: int | None = None
    longest_text: int | None = None  # sentence-transformers' own bound, where less than the context
    vocabulary: int | None = None
    tokenizer: str | None = None
    tokenizer_pre: str | None = None
    pooling: str | None = None
    normalize: bool | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    prompts: tuple[tuple[str, str], ...] = ()
    templates: tuple[ReportTemplate, ...] = ()
    licence: str | None = None
    inputs: tuple[ReportTensor, ...] = ()
    outputs: tuple[ReportTensor, ...] = ()
    made_by: str | None = None
    notes: tuple[Reason, ...] = ()
