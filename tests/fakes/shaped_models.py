"""GGUF files of a real model's shape with random weights: as large, as slow and as hungry, and free of any licence.

    python -m tests.fakes.shaped_models bge-m3 Q4_K_M FILE.gguf

Quantized blocks are random too, with scales that keep all numbers finite.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType

Bytes = npt.NDArray[np.uint8]
Kind = GGMLQuantizationType
_POOL = 1024  # random blocks, repeated over a tensor
# Where a block's scales lie, as bytes from its start (ggml-common.h). They are set to a small half-float.
_SCALES = {Kind.Q8_0: (0,), Kind.Q4_0: (0,), Kind.Q4_1: (0, 2), Kind.Q4_K: (0, 2), Kind.Q6_K: (208,)}
_MIXED = {
    "Q4_K_M": (Kind.Q4_K, Kind.Q6_K),
    "F16": (Kind.F16,) * 2,
    "Q8_0": (Kind.Q8_0,) * 2,
    "Q4_0": (Kind.Q4_0,) * 2,
}


@dataclass(frozen=True)
class Shape:
    """``kind`` is the GGUF architecture: bert, qwen2 or qwen3."""

    kind: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    positions: int
    vocabulary: int
    pooling: int | None = None  # gguf.PoolingType

    @property
    def head(self) -> int:
        """Numbers of one head."""
        return self.width // self.heads


SHAPES = {
    "bge-m3": Shape("bert", 24, 1024, 16, 16, 4096, 8192, 250_002, pooling=2),
    "qwen2-1.5b": Shape("qwen2", 28, 1536, 12, 2, 8960, 32_768, 151_936),
    "qwen3-embedding-0.6b": Shape("qwen3", 28, 1024, 8, 8, 3072, 32_768, 151_669, pooling=3),
    "small-encoder": Shape("bert", 2, 256, 4, 4, 512, 2048, 250_002, pooling=1),
    "small-decoder": Shape("qwen2", 2, 256, 4, 2, 512, 4096, 151_936),
}


def write(name: str, quantization: str, path: Path) -> Path:
    """The file at ``path``; nothing is done where it is there already."""
    if path.is_file():
        return path
    shape = SHAPES[name]
    part = path.with_name(path.name + ".part")
    writer = GGUFWriter(part, shape.kind)
    _facts(writer, shape, name, quantization)
    (_t5_vocabulary if shape.kind == "bert" else _bpe_vocabulary)(writer, shape.vocabulary)
    random = np.random.default_rng(1)
    tensors = list(_tensors(shape, *_MIXED[quantization]))
    for tensor, sizes, kind in tensors:
        raw = _stored(sizes, kind)
        writer.add_tensor_info(tensor, raw, np.dtype(np.uint8), int(np.prod(raw)), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _, sizes, kind in tensors:
        writer.write_tensor_data(_random(random, _stored(sizes, kind), kind))
    writer.close()
    part.rename(path)
    return path


def _stored(sizes: tuple[int, ...], kind: Kind) -> tuple[int, ...]:
    """As rows of bytes."""
    block, size = GGML_QUANT_SIZES[kind]
    return (*sizes[:-1], sizes[-1] // block * size)


def _random(random: np.random.Generator, sizes: tuple[int, ...], kind: Kind) -> Bytes:
    count = int(np.prod(sizes))
    if kind in (Kind.F32, Kind.F16):
        of = np.float32 if kind == Kind.F32 else np.float16
        numbers = (0.02 * random.standard_normal(min(count, 1 << 22) // np.dtype(of).itemsize)).astype(of)
        return np.resize(numbers.view(np.uint8), sizes)
    size = GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, (_POOL, size), np.uint8)
    for at in _SCALES[kind]:
        blocks[:, at : at + 2] = np.frombuffer(np.float16(0.0005).tobytes(), np.uint8)
    return np.resize(blocks, sizes)


def _facts(writer: GGUFWriter, shape: Shape, name: str, quantization: str) -> None:
    writer.add_name(name)
    writer.add_file_type(LlamaFileType[f"MOSTLY_{quantization}"])
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.positions)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    if shape.pooling is not None:
        writer.add_uint32(f"{shape.kind}.pooling_type", shape.pooling)
    if shape.kind == "bert":
        writer.add_layer_norm_eps(1e-5)
        writer.add_causal_attention(False)
        writer.add_token_type_count(1)
    else:
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_rope_freq_base(1e6)


def _tensors(shape: Shape, kind: Kind, finer: Kind) -> Iterator[tuple[str, tuple[int, ...], Kind]]:
    """Names, sizes (slowest first) and types, mixed as ``llama-quantize`` does for Q4_K_M."""
    plain, width, kv = Kind.F32, shape.width, shape.kv_heads * shape.head
    encoder = shape.kind == "bert"
    yield "token_embd.weight", (shape.vocabulary, width), finer
    if encoder:
        yield "position_embd.weight", (shape.positions, width), plain
        yield "token_types.weight", (1, width), plain
        yield from ((f"token_embd_norm.{part}", (width,), plain) for part in ("weight", "bias"))
    else:
        yield "output_norm.weight", (width,), plain
    for layer in range(shape.layers):
        fine = finer if layer % 2 else kind
        rows = {"attn_q": width, "attn_k": kv, "attn_v": kv, "attn_output": width, "ffn_up": shape.inner}
        if not encoder:
            rows["ffn_gate"] = shape.inner
        for matrix, count in rows.items():
            yield f"blk.{layer}.{matrix}.weight", (count, width), fine if matrix == "attn_v" else kind
        yield f"blk.{layer}.ffn_down.weight", (width, shape.inner), fine
        yield from _vectors(shape, layer, kv)


def _vectors(shape: Shape, layer: int, kv: int) -> Iterator[tuple[str, tuple[int, ...], Kind]]:
    width = shape.width
    sizes: dict[str, int] = {}
    if shape.kind in ("bert", "qwen2"):
        sizes |= {"attn_q.bias": width, "attn_k.bias": kv, "attn_v.bias": kv}
    if shape.kind == "bert":
        sizes |= {"attn_output.bias": width, "ffn_up.bias": shape.inner, "ffn_down.bias": width}
        norms = ("attn_output_norm", "layer_output_norm")
        sizes |= {f"{norm}.{part}": width for norm in norms for part in ("weight", "bias")}
    else:
        sizes |= {"attn_norm.weight": width, "ffn_norm.weight": width}
    if shape.kind == "qwen3":
        sizes |= {"attn_q_norm.weight": shape.head, "attn_k_norm.weight": shape.head}
    for name, size in sizes.items():
        yield f"blk.{layer}.{name}", (size,), Kind.F32


def _t5_vocabulary(writer: GGUFWriter, count: int) -> None:
    """XLM-R's kind: unigram pieces with scores."""
    words = [f"\u2581{''.join(letters)}" for letters in itertools.islice(_words(), count - 5)]
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(["<s>", "<pad>", "</s>", "<unk>", *words, "<mask>"])
    writer.add_token_scores([0.0] * 4 + [-10.0 - n / count for n in range(count - 5)] + [0.0])
    special = [TokenType.CONTROL] * 3 + [TokenType.UNKNOWN]
    writer.add_token_types([*special, *[TokenType.NORMAL] * (count - 5), TokenType.CONTROL])
    writer.add_add_space_prefix(True)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_sep_token_id(2)
    writer.add_pad_token_id(1)
    writer.add_mask_token_id(count - 1)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def _words() -> Iterator[tuple[str, ...]]:
    for length in itertools.count(3):
        yield from itertools.product("etaoinshrdlu", repeat=length)


def _bpe_vocabulary(writer: GGUFWriter, count: int) -> None:
    """GPT-2's kind: 256 bytes, then every pair of two of the tokens before, and the merges that make them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    tokens = [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]
    letters = tokens[ord("a") : ord("z") + 1] + tokens[ord("A") : ord("Z") + 1]
    merges: list[str] = []
    ends = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    grown = list(letters)  # grows while it is walked
    pairs = ((first, second) for first in grown for second in letters)
    for first, second in itertools.islice(pairs, count - len(tokens) - len(ends)):
        tokens.append(first + second)
        grown.append(first + second)
        merges.append(f"{first} {second}")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*tokens, *ends])
    writer.add_token_types([TokenType.NORMAL] * len(tokens) + [TokenType.CONTROL] * len(ends))
    writer.add_token_merges(merges)
    writer.add_eos_token_id(count - 1)
    writer.add_pad_token_id(count - 3)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
