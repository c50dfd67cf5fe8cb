"""OnnxInfo: an encoder as an ONNX graph, and what the graph itself does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class OnnxInfo:
    """``onnx.json`` beside the graph. Paths are names in its folder; lengths in tokens.

    The graph gives one state a token; ``pooling`` (mean, cls, last) over the attention mask and ``normalize`` make
    the vector of them. The tokenizer neither pads nor cuts: cut at ``longest_text``, pad with ``pad_token``.
    """

    SCHEMA: ClassVar[str] = "sampan/onnx/1"

    name: str
    source: str
    file_name: str
    external: tuple[str, ...]  # files of numbers beside it: a graph may hold 2 GB
    tokenizer: str
    golden: str
    sha256: str  # of the graph
    size_bytes: int  # graph and numbers
    opset: int
    inputs: tuple[str, ...]
    output: str
    architecture: str  # class in config.json
    embedding_length: int
    layers: int
    heads: int
    feed_forward_length: int
    context_length: int
    longest_text: int
    vocabulary: int
    pad_token: int
    pooling: str
    normalize: bool
    query_prefix: str
    passage_prefix: str
    licence: str | None
    checked_by: str  # what ran the graph for the check
    cosine: float  # worst of the golden texts, against the reference
