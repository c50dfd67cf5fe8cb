"""The Llama decoder in numpy, float32: a prompt in, greedy tokens and how clear each choice was.

Formulas: Touvron et al., "LLaMA" (2023): RMSNorm, rotary positions (Su et al., 2021), grouped-query attention
(Ainslie et al., 2023), SwiGLU (Shazeer, 2020). GGUF stores Q and K so that a rotated pair lies side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sampan.weights.reference import one_thread
from sampan.weights.reference.tensors import Array, TensorSource

_F = np.float32


@dataclass(frozen=True)
class LlamaShape:
    """What the tensors do not tell."""

    layers: int
    heads: int
    kv_heads: int
    epsilon: float
    rope_base: float
    rope_size: int  # how many numbers of a head are rotated


@dataclass(frozen=True)
class Choice:
    """One greedy step: the token taken, and by how much its logit leads the second."""

    token: int
    margin: float


class Llama:
    """All layers unpacked, 4 bytes a parameter: the caller looks at the size first."""

    def __init__(self, source: TensorSource, shape: LlamaShape) -> None:
        self._source, self._shape = source, shape
        self._layers = [_Layer(source, number, shape) for number in range(shape.layers)]
        self._norm = source.get("output_norm.weight")
        # Without an output matrix the vocabulary serves for both ends.
        self._output = source.get("output.weight" if source.has("output.weight") else "token_embd.weight")

    def greedy(self, prompt: Sequence[int], steps: int, stop: frozenset[int]) -> list[Choice]:
        """Continue ``prompt`` by at most ``steps`` tokens; a token of ``stop`` ends it and is not given."""
        with one_thread():
            return self._greedy(prompt, steps, stop)

    def _greedy(self, prompt: Sequence[int], steps: int, stop: frozenset[int]) -> list[Choice]:
        caches = [_Cache() for _ in self._layers]
        logits = self._logits(list(prompt), 0, caches)
        position = len(prompt)
        choices: list[Choice] = []
        while len(choices) < steps:
            second, first = np.argpartition(logits, -2)[-2:]
            token = int(first if logits[first] >= logits[second] else second)
            if token in stop:
                break
            choices.append(Choice(token, abs(float(logits[first] - logits[second]))))
            logits = self._logits([token], position, caches)
            position += 1
        return choices

    def _logits(self, tokens: list[int], position: int, caches: list[_Cache]) -> Array:
        states = self._source.rows("token_embd.weight", tokens)
        angles = _angles(self._source, self._shape, range(position, position + len(tokens)))
        for layer, cache in zip(self._layers, caches, strict=True):
            states = layer(states, angles, cache)
        last = _rms_norm(states[-1:], self._norm, self._shape.epsilon)
        return np.asarray((last @ self._output.T)[0], dtype=_F)


class _Cache:
    """Keys and values of one layer so far: heads × tokens × size."""

    keys: Array | None = None
    values: Array | None = None

    def extend(self, keys: Array, values: Array) -> tuple[Array, Array]:
        self.keys = keys if self.keys is None else np.concatenate([self.keys, keys], axis=1)
        self.values = values if self.values is None else np.concatenate([self.values, values], axis=1)
        return self.keys, self.values


class _Layer:
    def __init__(self, source: TensorSource, number: int, shape: LlamaShape) -> None:
        names = (
            "attn_norm",
            "attn_q",
            "attn_k",
            "attn_v",
            "attn_output",
            "ffn_norm",
            "ffn_gate",
            "ffn_up",
            "ffn_down",
        )
        self._w = {name: source.get(f"blk.{number}.{name}.weight") for name in names}
        self._shape = shape

    def __call__(self, states: Array, angles: tuple[Array, Array], cache: _Cache) -> Array:
        w, epsilon = self._w, self._shape.epsilon
        states = states + self._attend(_rms_norm(states, w["attn_norm"], epsilon), angles, cache)
        inner = _rms_norm(states, w["ffn_norm"], epsilon)
        gated = _silu(inner @ w["ffn_gate"].T) * (inner @ w["ffn_up"].T)
        return np.asarray(states + gated @ w["ffn_down"].T, dtype=_F)

    def _attend(self, states: Array, angles: tuple[Array, Array], cache: _Cache) -> Array:
        shape, count = self._shape, len(states)
        query = _rotate(_heads(states @ self._w["attn_q"].T, shape.heads), angles)
        key = _rotate(_heads(states @ self._w["attn_k"].T, shape.kv_heads), angles)
        keys, values = cache.extend(key, _heads(states @ self._w["attn_v"].T, shape.kv_heads))
        group = shape.heads // shape.kv_heads
        keys, values = np.repeat(keys, group, axis=0), np.repeat(values, group, axis=0)
        scores = query @ keys.transpose(0, 2, 1) / _F(np.sqrt(query.shape[-1]))
        seen = keys.shape[1]
        future = np.arange(seen) > np.arange(seen - count, seen)[:, None]
        weights = np.exp(np.where(future, _F(-np.inf), scores - scores.max(axis=-1, keepdims=True)))
        mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ values
        return np.asarray(mixed.transpose(1, 0, 2).reshape(count, -1) @ self._w["attn_output"].T, dtype=_F)


def _heads(states: Array, heads: int) -> Array:
    return np.asarray(states.reshape(len(states), heads, -1).transpose(1, 0, 2), dtype=_F)


def _angles(source: TensorSource, shape: LlamaShape, positions: range) -> tuple[Array, Array]:
    """Cosine and sine for each position and rotated pair."""
    steps = np.arange(0, shape.rope_size, 2, dtype=np.float64) / shape.rope_size
    frequencies = shape.rope_base**-steps
    if source.has("rope_freqs.weight"):  # stretches long waves, as Llama 3.1 does
        frequencies = frequencies / source.get("rope_freqs.weight")
    turns = np.asarray(positions, dtype=np.float64)[:, None] * frequencies
    return np.cos(turns).astype(_F), np.sin(turns).astype(_F)


def _rotate(heads: Array, angles: tuple[Array, Array]) -> Array:
    """Turn the pairs (0,1), (2,3)… of each head; what lies beyond the rotated part stays."""
    cosine, sine = angles
    size = 2 * cosine.shape[1]
    even, odd = heads[..., 0:size:2], heads[..., 1:size:2]
    turned: Array = heads.copy()
    turned[..., 0:size:2] = even * cosine - odd * sine
    turned[..., 1:size:2] = even * sine + odd * cosine
    return turned


def _rms_norm(states: Array, weight: Array, epsilon: float) -> Array:
    return np.asarray(
        states / np.sqrt(np.square(states).mean(axis=-1, keepdims=True) + _F(epsilon)) * weight, dtype=_F
    )


def _silu(states: Array) -> Array:
    return np.asarray(states / (_F(1) + np.exp(-states)), dtype=_F)
