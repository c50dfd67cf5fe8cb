"""The tensors of a model folder: safetensors files, validated by their library, read without copying.

Pickles (``pytorch_model.bin``) are refused: reading one can run any program that its author put there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.weights.files import inside, member, read_object, refuse_lfs_pointer

Array = npt.NDArray[np.float32]

HEADER_LIMIT = 16 << 20  # bytes; a thousand tensors need 0.1 MB
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True)
class StoredTensor:
    """Where one tensor lies: ``begin`` in bytes from the start of the file, shape as PyTorch has it."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int

    def read(self) -> Array:
        """Its numbers as float32."""
        count = int(np.prod(self.shape, dtype=np.int64))
        form = np.dtype(_DTYPES[self.dtype])
        flat = np.memmap(self.file, dtype=form, mode="r", offset=self.begin, shape=(count,)) if count else np.empty(0)
        if self.dtype == "BF16":  # the upper half of a float32
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        return np.asarray(flat, dtype=np.float32).reshape(self.shape)


def tensor_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files of the folder, each present and fetched. Raises BadInputError."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = sorted({str(name) for name in member(read_object(index), "weight_map").values()})
    else:
        names = ["model.safetensors"] if (folder / "model.safetensors").is_file() else []
    if not names:
        pickles = sorted(path.name for path in folder.glob("*.bin"))
        if pickles:
            raise BadInputError("weights.pickle_only", path=str(folder), files=", ".join(pickles))
        raise BadInputError("weights.no_tensors", path=str(folder))
    files = tuple(inside(folder, name) for name in names)
    for file in files:
        if not file.is_file():
            raise BadInputError("weights.shard_missing", path=str(folder), shard=file.name)
        refuse_lfs_pointer(file)
    return files


def stored_tensors(files: tuple[Path, ...]) -> dict[str, StoredTensor]:
    """Every floating-point tensor of these files by its name. Raises BadInputError."""
    found: dict[str, StoredTensor] = {}
    for file in files:
        found.update(_tensors_of(file))
    return found


def other_types(files: tuple[Path, ...]) -> dict[str, str]:
    """Tensors whose numbers are of a type that is not read here (float8, integers): name -> type."""
    return {name: dtype for file in files for name, (dtype, _, _) in _header_of(file).items() if dtype not in _DTYPES}


def _tensors_of(file: Path) -> dict[str, StoredTensor]:
    found = _header_of(file).items()
    return {name: StoredTensor(file, dtype, shape, at) for name, (dtype, shape, at) in found if dtype in _DTYPES}


def _header_of(file: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Name -> type, shape, first byte in the file. Raises BadInputError."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(HEADER_LIMIT, size - 8):
            detail = text("weights.damage.header_length", length=length, size=size)
            raise BadInputError("weights.safetensors", path=str(file), detail=detail)
        raw = stream.read(length)
    try:
        with safe_open(file, framework="np"):  # checks dtypes, shapes, offsets and the file's length
            header = json.loads(raw)
    except (SafetensorError, ValueError, RecursionError, OSError) as error:
        raise BadInputError("weights.safetensors", path=str(file), detail=str(error)) from error
    return {
        name: (entry["dtype"], tuple(entry["shape"]), 8 + length + entry["data_offsets"][0])
        for name, entry in header.items()
        if name != "__metadata__"
    }
