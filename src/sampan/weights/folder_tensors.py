"""A folder's tensors under the names that GGUF gives them, checked, one at a time in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from gguf.constants import MODEL_ARCH, GGMLQuantizationType
from gguf.tensor_mapping import get_tensor_name_map

from sampan.errors import BadInputError
from sampan.weights.folder import ModelFolder
from sampan.weights.quantize import F16_LARGEST, rounded, tensor_type
from sampan.weights.tensors import Array, StoredTensor, stored_tensors, tensor_files

_PREFIXES = ("bert.", "roberta.")
_OLD_ENDS = {".gamma": ".weight", ".beta": ".bias"}
_POSITIONS = "position_embd.weight"


@dataclass(frozen=True)
class FolderTensors:
    """A TensorSource (see reference.tensors) over safetensors.

    With ``rounded_to`` the numbers come as the GGUF of that quantization will hold them. Positions that no text uses
    (XLM-R's first) are left out.
    """

    folder: ModelFolder
    stored: dict[str, StoredTensor]
    rounded_to: str = "f32"

    def with_rounding(self, quantization: str) -> FolderTensors:
        """The same tensors as another quantization will hold them."""
        return replace(self, rounded_to=quantization)

    def names(self) -> tuple[str, ...]:
        """All names in the order of writing."""
        return tuple(self.stored)

    def has(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self.stored

    def shape(self, name: str) -> tuple[int, ...]:
        """Rows and columns as they will be written."""
        shape = self.stored[name].shape
        return (self.folder.positions, *shape[1:]) if name == _POSITIONS else shape

    def get(self, name: str) -> Array:
        """One tensor as float32. Raises BadInputError where it holds NaN, infinity or what float16 cannot hold."""
        return self._checked(name, self._read(name))

    def rows(self, name: str, numbers: Sequence[int]) -> Array:
        """These rows of a table as float32. Raises as ``get``."""
        return self._checked(name, self._read(name)[list(numbers)])

    def _read(self, name: str) -> Array:
        data = self.stored[name].read()
        return data[self.folder.position_offset :] if name == _POSITIONS else data

    def _checked(self, name: str, data: Array) -> Array:
        path, kind = str(self.folder.model), tensor_type(name, data.shape, self.rounded_to)
        largest = float(np.abs(data).max(initial=0.0))  # NaN and infinity both show here
        if not np.isfinite(largest):
            raise BadInputError("weights.not_finite", path=path, tensor=name)
        if kind == GGMLQuantizationType.F16 and largest > F16_LARGEST:
            raise BadInputError("weights.f16_overflow", path=path, tensor=name)
        return rounded(data, kind)


def open_tensors(folder: ModelFolder) -> FolderTensors:
    """All tensors of the architecture, each there and of the right shape. Raises BadInputError."""
    found = _by_gguf_name(folder)
    expected = expected_shapes(folder)
    for name, shape in expected.items():
        if name not in found:
            raise BadInputError("weights.tensor_missing", path=str(folder.model), tensor=name)
        if found[name].shape != shape:
            detail = f"{list(found[name].shape)} ≠ {list(shape)}"
            raise BadInputError("weights.tensor_shape", path=str(folder.model), tensor=name, detail=detail)
    return FolderTensors(folder, {name: found[name] for name in expected})


def _by_gguf_name(folder: ModelFolder) -> dict[str, StoredTensor]:
    """GGUF name -> tensor for the encoder's own tensors; poolers and training heads make no embedding."""
    names = get_tensor_name_map(MODEL_ARCH.BERT, folder.layers)
    found: dict[str, StoredTensor] = {}
    for name, tensor in sorted(stored_tensors(tensor_files(folder.model)).items()):
        plain = _plain(name)
        if not plain.startswith(("embeddings.", "encoder.")) or plain == "embeddings.position_ids":
            continue
        target = names.get_name(plain, try_suffixes=(".weight", ".bias"))
        if target is None:
            raise BadInputError("weights.unsupported", path=str(folder.model), what="tensor", value=name)
        found[target] = tensor
    return found


def _plain(name: str) -> str:
    """A tensor's name without the wrapper's prefix and with today's names for a norm's two parts."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    for old, new in _OLD_ENDS.items():
        name = name[: -len(old)] + new if name.endswith(old) else name
    return name


def expected_shapes(folder: ModelFolder) -> dict[str, tuple[int, ...]]:
    """Every tensor of the architecture with the shape that the folder must hold, in the order of writing."""
    width, inner = folder.width, folder.feed_forward
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (folder.vocabulary, width),
        _POSITIONS: (folder.positions + folder.position_offset, width),
        "token_types.weight": (folder.token_types, width),
        "token_embd_norm.weight": (width,),
        "token_embd_norm.bias": (width,),
    }
    matrices = {"attn_q": (width, width), "attn_k": (width, width), "attn_v": (width, width)}
    matrices |= {"attn_output": (width, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}
    for layer in range(folder.layers):
        for name, (rows, columns) in matrices.items():
            shapes[f"blk.{layer}.{name}.weight"] = (rows, columns)
            shapes[f"blk.{layer}.{name}.bias"] = (rows,)
        for name in ("attn_output_norm", "layer_output_norm"):
            shapes[f"blk.{layer}.{name}.weight"] = shapes[f"blk.{layer}.{name}.bias"] = (width,)
    return shapes
