"""How many numbers of which kind a folder's safetensors hold: headers only, checked by their library."""

from __future__ import annotations

import math
from pathlib import Path

from safetensors import SafetensorError, safe_open

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.weights.tensors import HEADER_LIMIT, tensor_files

PICKLES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl"})


def stored_elements(model: Path) -> dict[str, int]:
    """Count by type, as safetensors names it: F32, BF16, I8… Raises BadInputError."""
    counts: dict[str, int] = {}
    for file in tensor_files(model):
        for kind, count in elements_of(file).items():
            counts[kind] = counts.get(kind, 0) + count
    return counts


def elements_of(file: Path) -> dict[str, int]:
    """Count by type of one file. Raises BadInputError."""
    require_header(file)
    counts: dict[str, int] = {}
    try:
        with safe_open(file, framework="np") as opened:  # checks types, shapes, places and the file's length
            for name in opened.keys():  # noqa: SIM118  (no mapping)
                part = opened.get_slice(name)
                kind = str(part.get_dtype())
                counts[kind] = counts.get(kind, 0) + math.prod(part.get_shape())
    except (SafetensorError, OSError) as error:
        raise BadInputError("weights.safetensors", path=str(file), detail=str(error)) from error
    return counts


def require_header(file: Path) -> None:
    """The length of the header is plausible: nobody else bounds it. Raises BadInputError."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(HEADER_LIMIT, size - 8):
        detail = text("weights.damage.header_length", length=length, size=size)
        raise BadInputError("weights.safetensors", path=str(file), detail=detail)
