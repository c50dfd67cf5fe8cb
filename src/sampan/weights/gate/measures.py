"""How alike two sets of vectors are: cosines, neighbours, the order of similarities. Pure, float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]  # texts × dimensions
_Real = npt.NDArray[np.float64]
NEIGHBOURS = 10


@dataclass(frozen=True)
class Likeness:
    """See GateRow."""

    cosine_min: float
    cosine_mean: float
    overlap: float
    spearman: float

    def worse(self, other: Likeness) -> Likeness:
        """Per measure the worse of two sets of texts."""
        return Likeness(
            min(self.cosine_min, other.cosine_min),
            min(self.cosine_mean, other.cosine_mean),
            min(self.overlap, other.overlap),
            min(self.spearman, other.spearman),
        )


def likeness(base: Vectors, other: Vectors) -> Likeness:
    """Of the same texts' vectors by two models. A vector that is zero or not finite makes every measure 0."""
    first, second = _unit(base), _unit(other)
    if first is None or second is None or first.shape != second.shape:
        return Likeness(0.0, 0.0, 0.0, 0.0)
    cosines = np.einsum("ij,ij->i", first, second)
    one, two = first @ first.T, second @ second.T
    return Likeness(float(cosines.min()), float(cosines.mean()), _overlap(one, two), _pair_order(one, two))


def _unit(vectors: Vectors) -> _Real | None:
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not np.isfinite(wide).all() or not (lengths > 0).all():
        return None
    return np.asarray(wide / lengths)


def _overlap(one: _Real, two: _Real) -> float:
    """The share of each row's nearest others that both have, mean over rows."""
    count = min(NEIGHBOURS, len(one) - 1)
    if count < 1:
        return 1.0
    shares = [len(a & b) / count for a, b in zip(_nearest(one, count), _nearest(two, count), strict=True)]
    return float(np.mean(shares))


def _nearest(similarity: _Real, count: int) -> list[set[int]]:
    alone = similarity.copy()
    np.fill_diagonal(alone, -np.inf)
    return [set(row.tolist()) for row in np.argsort(-alone, axis=1, kind="stable")[:, :count]]


def _pair_order(one: _Real, two: _Real) -> float:
    upper = np.triu_indices(len(one), k=1)
    return spearman(one[upper], two[upper])


def spearman(one: _Real, two: _Real) -> float:
    """Rank correlation, equal values sharing their mean rank; 1 for fewer than two values or no variation in both."""
    a, b = _ranks(one), _ranks(two)
    a, b = a - a.mean() if a.size else a, b - b.mean() if b.size else b
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread > 0 else float(np.array_equal(a, b))


def _ranks(values: _Real) -> _Real:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse.ravel()], dtype=np.float64)
