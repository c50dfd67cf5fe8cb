"""llama-perplexity's command lines and what it prints: perplexity and KL divergence against a base.

Output format: tools/perplexity/perplexity.cpp of the pinned source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_CONTEXT = 256  # tokens; half of each chunk is judged, the other half is its context
_MOST_LOGITS = 1 << 30  # bytes of the base's saved logits
_STATISTICS = {
    "perplexity": re.compile(r"^Mean PPL\(Q\)\s*:\s*(\S+)", re.MULTILINE),
    "kl_mean": re.compile(r"^Mean\s+KLD:\s*(\S+)", re.MULTILINE),
    "kl_p99": re.compile(r"^99\.0%\s+KLD:\s*(\S+)", re.MULTILINE),
    "same_top": re.compile(r"^Same top p:\s*(\S+)", re.MULTILINE),
}
CHUNK = re.compile(r"\[(\d+)\]|^\s*(\d+)\s+\d")


@dataclass(frozen=True)
class Divergence:
    """See GateRow; ``same_top`` between 0 and 1."""

    perplexity: float
    kl_mean: float
    kl_p99: float
    same_top: float


def chunks(vocabulary: int) -> int:
    """How many chunks of text the base's logits (2 bytes each, of every second position) may be kept of."""
    return max(2, min(64, _MOST_LOGITS // (_CONTEXT // 2 * (vocabulary + 4) * 2)))


def logits_bytes(vocabulary: int) -> int:
    """The most disk space that the base's logits take."""
    return chunks(vocabulary) * (_CONTEXT // 2 + 1) * (vocabulary + 4) * 2


def base_argv(tool: Path, model: Path, text: Path, logits: Path, *, threads: int, vocabulary: int) -> tuple[str, ...]:
    """Read ``text`` with the base and keep its logits."""
    common = (*_common(tool, model, logits, threads), "--chunks", str(chunks(vocabulary)))
    return (*common, "--file", str(text))


def compare_argv(tool: Path, model: Path, logits: Path, *, threads: int) -> tuple[str, ...]:
    """Hold another file of the same model against the kept logits."""
    return (*_common(tool, model, logits, threads), "--kl-divergence")


def _common(tool: Path, model: Path, logits: Path, threads: int) -> tuple[str, ...]:
    return (
        *(str(tool), "--model", str(model), "--kl-divergence-base", str(logits), "--offline", "--log-colors", "off"),
        *("--ctx-size", str(_CONTEXT), "--batch-size", str(_CONTEXT), "--threads", str(threads)),
    )


def parse(output: str) -> Divergence | None:
    """The statistics at the end of a comparison; None where they are not all there."""
    found = {name: pattern.search(output) for name, pattern in _STATISTICS.items()}
    try:
        numbers = {name: float(match[1]) for name, match in found.items() if match}
    except ValueError:
        return None
    if len(numbers) != len(_STATISTICS):
        return None
    numbers["same_top"] /= 100
    return Divergence(**numbers)
