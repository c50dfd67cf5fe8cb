"""Where the reference takes its numbers from: tensors by GGUF's names, as float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from sampan.errors import BadInputError
from sampan.weights.gguf_header import GgufHeader, TensorInfo

Array = npt.NDArray[np.float32]


class TensorSource(Protocol):
    """Tensors by name; shapes as PyTorch has them: rows first."""

    def has(self, name: str) -> bool:
        """Whether there is such a tensor."""
        ...

    def get(self, name: str) -> Array:
        """The whole tensor. Raises BadInputError where there is none."""
        ...

    def rows(self, name: str, numbers: Sequence[int]) -> Array:
        """Some rows of a matrix: a vocabulary is never unpacked whole for one text."""
        ...


@dataclass(frozen=True)
class GgufTensors:
    """A TensorSource over a GGUF file; quantized numbers are unpacked by the ``gguf`` library."""

    header: GgufHeader
    index: dict[str, TensorInfo]

    @classmethod
    def of(cls, header: GgufHeader) -> GgufTensors:
        """Over the file whose header this is."""
        return cls(header, {tensor.name: tensor for tensor in header.tensors})

    def has(self, name: str) -> bool:
        """See TensorSource."""
        return name in self.index

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Rows first; None where there is no such tensor."""
        return self.index[name].shape[::-1] if name in self.index else None

    def get(self, name: str) -> Array:
        """See TensorSource."""
        tensor = self._info(name)
        return _unpack(self._raw(tensor), tensor.type).reshape(tensor.shape[::-1])

    def rows(self, name: str, numbers: Sequence[int]) -> Array:
        """See TensorSource."""
        tensor = self._info(name)
        raw = self._raw(tensor).reshape(tensor.shape[1], -1)[list(numbers)]
        return _unpack(raw, tensor.type).reshape(len(numbers), tensor.shape[0])

    def _info(self, name: str) -> TensorInfo:
        if name not in self.index:
            raise BadInputError("weights.tensor_missing", path=str(self.header.path), tensor=name)
        return self.index[name]

    def _raw(self, tensor: TensorInfo) -> npt.NDArray[np.uint8]:
        shape = (tensor.size_bytes,)
        return np.memmap(self.header.path, dtype=np.uint8, mode="r", offset=tensor.offset, shape=shape)


def _unpack(raw: npt.NDArray[np.uint8], kind: GGMLQuantizationType) -> Array:
    """Bytes of whole blocks to float32, in their order."""
    raw = np.ascontiguousarray(raw)
    if kind == GGMLQuantizationType.F32:
        return raw.view(np.float32)
    if kind == GGMLQuantizationType.F16:
        return raw.view(np.float16).astype(np.float32)
    _, block_bytes = GGML_QUANT_SIZES[kind]
    return np.asarray(dequantize(raw.reshape(-1, block_bytes), kind), dtype=np.float32)
