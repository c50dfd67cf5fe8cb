"""From a GGUF header to WeightsInfo: pure, no file is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf.constants import LlamaFileType, PoolingType

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.weights import WeightsInfo
from sampan.weights.gguf_header import GgufHeader
from sampan.weights.tensor_bytes import tensor_bytes

# Encoders: they make vectors, never text. source: the engine's models that build no KV cache.
ENCODERS = frozenset(
    {"bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3", "eurobert"}
    | {"gemma-embedding"}
)
_QUANTIZATION = re.compile(r"[.-](?:BF16|F16|F32|FP16|I?Q\d\w*|TQ\d\w*|MXFP4\w*)$", re.IGNORECASE)


@dataclass(frozen=True)
class Origin:
    """Where a GGUF came from: ``source`` in the user's words, ``kind`` is WeightsInfo.origin."""

    name: str
    source: str
    kind: str
    sha256: str
    normalize: bool = True
    longest_text: int | None = None  # tokens; what the model's own files allow, where less than its positions
    query_prefix: str = ""
    passage_prefix: str = ""


def model_name(path: Path) -> str:
    """A public name from a file or folder name: without suffix and quantization; the hub cache's layout is known."""
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.rpartition("--")[2]
    stem = path.name.removesuffix(".gguf")
    return _QUANTIZATION.sub("", stem) or stem


def describe(header: GgufHeader, architecture: str, origin: Origin) -> WeightsInfo:
    """All that the header tells. Raises BadInputError where a size that the plan needs is missing."""
    facts = _Facts(header, architecture)
    pooling = facts.pooling()
    context = facts.size("context_length")
    heads = facts.size("attention.head_count")
    return WeightsInfo(
        name=origin.name,
        source=origin.source,
        origin=origin.kind,
        path=str(header.path),
        golden_path=None,
        file_name=header.path.name,
        sha256=origin.sha256,
        size_bytes=header.size_bytes,
        architecture=architecture,
        task=_task(pooling),
        quantization=_quantization(header),
        parameters=sum(tensor.elements for tensor in header.tensors),
        layers=facts.size("block_count", largest=len(header.tensors)),
        embedding_length=facts.size("embedding_length"),
        heads=heads,
        kv_heads=facts.size("attention.head_count_kv", default=heads),
        feed_forward_length=facts.size("feed_forward_length", default=0),
        context_length=min(context, origin.longest_text or context),
        vocabulary=len(facts.tokens()),
        tokenizer=facts.word("tokenizer.ggml.model") or "none",
        tokenizer_pre=facts.word("tokenizer.ggml.pre"),
        pooling=pooling,
        normalize=origin.normalize,
        chat_template=facts.word("tokenizer.chat_template") is not None,
        licence=facts.word("general.license"),
        query_prefix=origin.query_prefix,
        passage_prefix=origin.passage_prefix,
        head_length=facts.size("attention.key_length", default=0) or None,
        tensors=tensor_bytes(header),
    )


class _Facts:
    """Reads metadata by key, each with its type."""

    def __init__(self, header: GgufHeader, architecture: str) -> None:
        self._header, self._prefix = header, architecture

    def size(self, name: str, default: int | None = None, largest: int = (1 << 31) - 1) -> int:
        """A count of the architecture; where it differs by layer, the largest. Raises BadInputError."""
        key = f"{self._prefix}.{name}"
        value = self._header.fields.get(key, default)
        if isinstance(value, np.ndarray) and value.size and np.issubdtype(value.dtype, np.integer):
            value = int(value.max())
        if type(value) is not int or not (value > 0 or value == default) or value > largest:
            detail = text("weights.damage.field", name=key, value=repr(value)[:60])
            raise BadInputError("weights.damaged", path=str(self._header.path), detail=detail)
        return value

    def word(self, key: str) -> str | None:
        value = self._header.fields.get(key)
        return value if isinstance(value, str) else None

    def tokens(self) -> tuple[str, ...]:
        value = self._header.fields.get("tokenizer.ggml.tokens", ())
        return value if isinstance(value, tuple) else ()

    def pooling(self) -> str | None:
        """How token states become one vector.

        One with a classifier's head is a reranker. An encoder that does not say gets ``mean``: so does
        sentence-transformers with such a model. A decoder that does not say is a chat model: None.
        """
        value = self._header.fields.get(f"{self._prefix}.pooling_type")
        if type(value) is int and value in set(PoolingType):
            return PoolingType(value).name.lower()
        if self._has_classifier():
            return "rank"
        return "mean" if self._prefix in ENCODERS else None

    def _has_classifier(self) -> bool:
        """A head that scores: llama.cpp's converter writes one without a pooling type."""
        names = {tensor.name for tensor in self._header.tensors}
        return "cls.output.weight" in names or f"{self._prefix}.classifier.output_labels" in self._header.fields


def _task(pooling: str | None) -> str:
    if pooling is None:
        return "chat"
    return "rerank" if pooling == "rank" else "embedding"


def _quantization(header: GgufHeader) -> str:
    """The name of the file type; where the file does not say, the type that holds most numbers."""
    stated = header.fields.get("general.file_type")
    if type(stated) is int and stated in set(LlamaFileType):
        return LlamaFileType(stated).name.partition("_")[2]
    counts: dict[str, int] = {}
    for tensor in header.tensors:
        counts[tensor.type.name] = counts.get(tensor.type.name, 0) + tensor.elements
    return max(counts, key=lambda name: counts[name])
