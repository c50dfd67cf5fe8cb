"""The BERT encoder in numpy, float32: one text in, one unit vector out.

Formulas: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2019), on the post-norm transformer
of Vaswani et al. (2017). XLM-R is the same network with other tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sampan.weights.reference import one_thread
from sampan.weights.reference.tensors import Array, TensorSource

_F = np.float32


@dataclass(frozen=True)
class BertShape:
    """What the tensors do not tell: ``pooling`` is mean, cls or last."""

    layers: int
    heads: int
    epsilon: float
    pooling: str


def encode(source: TensorSource, shape: BertShape, batch: Sequence[Sequence[int]]) -> list[Array]:
    """Unit vectors of token-id sequences (special tokens included).

    Layers are the outer loop: each is unpacked once, and only one is in memory.
    """
    with one_thread():
        states = [_embed(source, ids, shape.epsilon) for ids in batch]
        for layer in range(shape.layers):
            block = _Block(source, layer, shape)
            states = [block(state) for state in states]
    return [_unit(_pool(state, shape.pooling)) for state in states]


def _embed(source: TensorSource, ids: Sequence[int], epsilon: float) -> Array:
    words = source.rows("token_embd.weight", ids)
    words = words + source.rows("position_embd.weight", range(len(ids)))
    if source.has("token_types.weight"):
        words = words + source.rows("token_types.weight", [0])
    return _norm(words, source.get("token_embd_norm.weight"), source.get("token_embd_norm.bias"), epsilon)


class _Block:
    """One layer: attention and feed-forward, each followed by its norm."""

    def __init__(self, source: TensorSource, layer: int, shape: BertShape) -> None:
        self._source, self._prefix, self._shape = source, f"blk.{layer}.", shape
        names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down")
        self._matrices = {name: self._pair(name) for name in names}
        self._norms = {name: self._pair(name) for name in ("attn_output_norm", "layer_output_norm")}

    def _pair(self, name: str) -> tuple[Array, Array]:
        weight = self._source.get(f"{self._prefix}{name}.weight")
        bias = f"{self._prefix}{name}.bias"
        return weight, self._source.get(bias) if self._source.has(bias) else np.zeros(len(weight), _F)

    def __call__(self, states: Array) -> Array:
        epsilon = self._shape.epsilon
        states = _norm(states + self._attend(states), *self._norms["attn_output_norm"], epsilon)
        inner = _gelu(self._linear("ffn_up", states))
        return _norm(states + self._linear("ffn_down", inner), *self._norms["layer_output_norm"], epsilon)

    def _linear(self, name: str, states: Array) -> Array:
        weight, bias = self._matrices[name]
        return np.asarray(states @ weight.T + bias, dtype=_F)

    def _attend(self, states: Array) -> Array:
        count, width = states.shape
        heads, size = self._shape.heads, width // self._shape.heads
        query, key, value = (
            self._linear(name, states).reshape(count, heads, size).transpose(1, 0, 2)
            for name in ("attn_q", "attn_k", "attn_v")
        )
        scores = query @ key.transpose(0, 2, 1) / _F(np.sqrt(size))
        mixed = _softmax(scores) @ value
        return self._linear("attn_output", mixed.transpose(1, 0, 2).reshape(count, width))


def _norm(states: Array, weight: Array, bias: Array, epsilon: float) -> Array:
    centred = states - states.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + _F(epsilon)) * weight + bias, dtype=_F)


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True), dtype=_F)


def _gelu(states: Array) -> Array:
    return np.asarray(states * _F(0.5) * (_F(1) + _erf(states / _F(np.sqrt(2.0)))), dtype=_F)


def _erf(values: Array) -> Array:
    """The error function, absolute error below 1.5e-7: Abramowitz and Stegun, 7.1.26. numpy has none."""
    size = np.abs(values).astype(np.float64)
    t = 1.0 / (1.0 + 0.3275911 * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(np.sign(values) * (1.0 - series * np.exp(-np.square(size))), dtype=_F)


def _pool(states: Array, pooling: str) -> Array:
    if pooling == "mean":
        return np.asarray(states.mean(axis=0), dtype=_F)
    return np.asarray(states[0 if pooling == "cls" else -1], dtype=_F)


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector), dtype=_F)
