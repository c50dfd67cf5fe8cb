"""A folder's tensors under the names that GGUF gives them, checked, one at a time in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from gguf.constants import MODEL_ARCH, GGMLQuantizationType
from gguf.tensor_mapping import get_tensor_name_map

from sampan.errors import BadInputError
from sampan.weights.folder import ModelFolder
from sampan.weights.layout import bert_shapes, require_shapes
from sampan.weights.quantize import F16_LARGEST, encode, rounded, tensor_type
from sampan.weights.tensors import Array, StoredTensor, other_types, stored_tensors, tensor_files

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
        return self._rounded(name, self._read(name))

    def encoded(self, name: str, quantization: str) -> npt.NDArray[np.generic]:
        """One tensor as the file will hold it. Raises as ``get``."""
        data = self._read(name)
        kind = tensor_type(name, data.shape, quantization)
        self._require_fit(name, data, kind)
        return encode(data, kind)

    def rows(self, name: str, numbers: Sequence[int]) -> Array:
        """These rows of a table as float32. Raises as ``get``."""
        return self._rounded(name, self._read(name)[list(numbers)])

    def _read(self, name: str) -> Array:
        data = self.stored[name].read()
        return data[self.folder.position_offset :] if name == _POSITIONS else data

    def _rounded(self, name: str, data: Array) -> Array:
        kind = tensor_type(name, data.shape, self.rounded_to)
        self._require_fit(name, data, kind)
        return rounded(data, kind)

    def _require_fit(self, name: str, data: Array, kind: GGMLQuantizationType) -> None:
        path = str(self.folder.model)
        largest = float(np.abs(data).max(initial=0.0))  # NaN and infinity both show here
        if not np.isfinite(largest):
            raise BadInputError("weights.not_finite", path=path, tensor=name)
        if kind == GGMLQuantizationType.F16 and largest > F16_LARGEST:
            raise BadInputError("weights.f16_overflow", path=path, tensor=name)


def open_tensors(folder: ModelFolder) -> FolderTensors:
    """All tensors of the architecture, each there and of the right shape. Raises BadInputError."""
    _refuse_types(folder)
    found = _by_gguf_name(folder)
    expected = bert_shapes(
        vocabulary=folder.vocabulary,
        positions=folder.positions + folder.position_offset,
        token_types=folder.token_types,
        width=folder.width,
        inner=folder.feed_forward,
        layers=folder.layers,
    )
    require_shapes(folder.model, expected, lambda name: found[name].shape if name in found else None)
    return FolderTensors(folder, {name: found[name] for name in expected})


def _refuse_types(folder: ModelFolder) -> None:
    """Raise BadInputError for weights in float8 or as integers: what they stand for is not in the file alone."""
    for name, dtype in other_types(tensor_files(folder.model)).items():
        if _plain(name).startswith(("embeddings.", "encoder.")) and name.endswith((".weight", ".bias")):
            raise BadInputError("weights.unsupported", path=str(folder.model), what="dtype", value=dtype)


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
