"""How a tensor is stored: the rules of llama.cpp's converter, the arithmetic of the ``gguf`` library."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType
from gguf.quants import dequantize, quantize

from sampan.weights.tensors import Array

_FILE_TYPES = {
    "f32": (LlamaFileType.ALL_F32, GGMLQuantizationType.F32),
    "f16": (LlamaFileType.MOSTLY_F16, GGMLQuantizationType.F16),
    "q8_0": (LlamaFileType.MOSTLY_Q8_0, GGMLQuantizationType.Q8_0),
}
QUANTIZATIONS = tuple(_FILE_TYPES)
_ALWAYS_F32 = ("position_embd.weight", "token_types.weight")
F16_LARGEST = 65504.0


def file_type(quantization: str) -> LlamaFileType:
    """GGUF's ``general.file_type``."""
    return _FILE_TYPES[quantization][0]


def tensor_type(name: str, shape: tuple[int, ...], quantization: str) -> GGMLQuantizationType:
    """What has one dimension (norms, biases) and the two small tables stay float32; odd rows fall back to float16."""
    wanted = _FILE_TYPES[quantization][1]
    if len(shape) < 2 or name in _ALWAYS_F32:
        return GGMLQuantizationType.F32
    block, _ = GGML_QUANT_SIZES[wanted]
    return wanted if shape[-1] % block == 0 else GGMLQuantizationType.F16


def stored_bytes(shape: tuple[int, ...], kind: GGMLQuantizationType) -> int:
    """The size of a tensor in the file."""
    block, block_bytes = GGML_QUANT_SIZES[kind]
    return int(np.prod(shape, dtype=np.int64)) // block * block_bytes


def encode(data: Array, kind: GGMLQuantizationType) -> npt.NDArray[np.generic]:
    """Numbers as the file holds them."""
    encoded: npt.NDArray[np.generic] = quantize(np.ascontiguousarray(data, dtype=np.float32), kind)
    return encoded


def rounded(data: Array, kind: GGMLQuantizationType) -> Array:
    """Numbers as they come back from the file. It works within a row: rounding rows is rounding the table."""
    if kind == GGMLQuantizationType.F32:
        return data
    return np.asarray(dequantize(quantize(np.ascontiguousarray(data), kind), kind), dtype=np.float32)
