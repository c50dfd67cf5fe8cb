"""Which types pass, and which of them is taken. The one decision for ``weights quantize`` and ``--quant auto``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sampan.spec.gate import GateBounds, GateRow


def refusals(row: GateRow, bounds: GateBounds) -> tuple[str, ...]:
    """The names of the measures that miss their bound; ``unmeasured`` where there is nothing to judge by."""
    least = (
        ("cosine_min", row.cosine_min, bounds.min_cosine),
        ("overlap", row.overlap, bounds.min_overlap),
        ("spearman", row.spearman, bounds.min_spearman),
    )
    missed = [name for name, value, bound in least if value is not None and not value >= bound]
    if row.kl_mean is not None and not row.kl_mean <= bounds.max_kl:
        missed.append("kl_mean")
    if row.cosine_min is None and row.kl_mean is None:
        missed.append("unmeasured")
    return tuple(missed)


def judged(rows: Iterable[GateRow], bounds: GateBounds) -> tuple[GateRow, ...]:
    """The rows with their refusals, largest file first."""
    return tuple(replace(row, refused=refusals(row, bounds)) for row in sorted(rows, key=lambda row: -row.size_bytes))


def choose(rows: Iterable[GateRow]) -> GateRow | None:
    """The smallest file that passes; of equal ones the faster. None where none passes."""
    passing = [row for row in rows if not row.refused]
    return min(passing, key=lambda row: (row.size_bytes, -(row.speed or 0.0)), default=None)
