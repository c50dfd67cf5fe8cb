"""What a quality gate found: each quantization of one model beside the unquantized one, measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class GateBounds:
    """A type that falls below (for ``max_kl``: rises above) one of them is refused.

    The first three are for embeddings, ``max_kl`` (nats a token, mean) is for chat.
    """

    min_cosine: float
    min_overlap: float
    min_spearman: float
    max_kl: float


@dataclass(frozen=True)
class GateRow:
    """One quantization. Measures are None where they do not apply to the task.

    ``cosine_min``/``cosine_mean``: of each text's vector with the unquantized model's. ``overlap``: share of each
    text's ten nearest neighbours that stay, mean. ``spearman``: rank correlation of all pairs' similarities.
    ``kl_mean``/``kl_p99``: Kullback-Leibler divergence of the next token's distribution, nats; ``same_top``: share of
    positions with the same best token; ``perplexity`` on the gate's text. ``speed``: see GateReport.speed_unit.
    ``fallbacks``: tensors whose rows do not divide into the type's blocks and were stored as another type.
    """

    quantization: str
    path: str
    sha256: str
    size_bytes: int
    fallbacks: int = 0
    cosine_min: float | None = None
    cosine_mean: float | None = None
    overlap: float | None = None
    spearman: float | None = None
    kl_mean: float | None = None
    kl_p99: float | None = None
    same_top: float | None = None
    perplexity: float | None = None
    speed: float | None = None
    refused: tuple[str, ...] = ()  # names of the measures that miss their bound


@dataclass(frozen=True)
class GateReport:
    """All types that were asked for. ``chosen``: the smallest that passes, None where none does."""

    SCHEMA: ClassVar[str] = "sampan/gate/1"

    model: str
    source: str
    task: str
    base: str  # the quantization of what all are compared with
    base_is_original: bool  # False: a quantized file's own numbers, unpacked
    engine: str
    texts: int
    bounds: GateBounds
    rows: tuple[GateRow, ...]
    chosen: str | None
    speed_unit: str  # texts/s or tokens/s, on this machine
    threads: int
