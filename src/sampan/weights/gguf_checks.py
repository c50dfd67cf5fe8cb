"""Is a GGUF file one that the engine can load and that gives numbers?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.spec.ports import Progress, Store
from sampan.weights.facts import engine_table
from sampan.weights.gguf_header import GgufHeader, TensorInfo

_CHUNK = 8 << 20  # bytes looked at in one go

# Where a block keeps its float16 scales, in 16-bit words from its start. A code of a quantized block is always
# finite; only a scale can be NaN or infinite. source: the block structures of ggml-common.h.
_SCALE_WORDS: dict[GGMLQuantizationType, tuple[int, ...]] = {
    GGMLQuantizationType.F16: (0,),
    GGMLQuantizationType.Q4_0: (0,),
    GGMLQuantizationType.Q4_1: (0, 1),
    GGMLQuantizationType.Q5_0: (0,),
    GGMLQuantizationType.Q5_1: (0, 1),
    GGMLQuantizationType.Q8_0: (0,),
    GGMLQuantizationType.Q2_K: (40, 41),
    GGMLQuantizationType.Q3_K: (54,),
    GGMLQuantizationType.Q4_K: (0, 1),
    GGMLQuantizationType.Q5_K: (0, 1),
    GGMLQuantizationType.Q6_K: (104,),
}


def architecture_of(header: GgufHeader) -> str:
    """The architecture, known to the pinned engine. Raises BadInputError."""
    found = header.fields.get("general.architecture")
    if not isinstance(found, str) or not header.tensors:
        detail = text("weights.damage.no_architecture")
        raise BadInputError("weights.damaged", path=str(header.path), detail=detail)
    for what, value in missing_support(header):
        raise BadInputError(f"weights.{what}", path=str(header.path), **{what: value})
    return found


def missing_support(header: GgufHeader) -> Iterator[tuple[str, str]]:
    """What the pinned engine refuses: (``architecture``, ``tokenizer_model`` or ``pre_tokenizer``, its value)."""
    table = engine_table()
    architecture = header.fields.get("general.architecture")
    model, pre = (header.fields.get(f"tokenizer.ggml.{name}") for name in ("model", "pre"))
    if architecture not in table.architectures:
        yield "architecture", str(architecture)
    if model is not None and model not in table.tokenizers:
        yield "tokenizer_model", str(model)
    # only byte-pair vocabularies have one; of the others the engine does not look at it
    if model == "gpt2" and pre is not None and pre not in table.pre_tokenizers:
        yield "pre_tokenizer", str(pre)


def refuse_split(header: GgufHeader) -> None:
    """Raise BadInputError for one part of a model that was split into several files."""
    count = header.fields.get("split.count", 0)
    if isinstance(count, int) and count > 1:
        raise BadInputError("weights.split", path=str(header.path), count=count)


def require_finite(header: GgufHeader, sha256: str, store: Store, progress: Progress) -> None:
    """Every scale and plain number is finite; looked at once per content. Raises BadInputError with the tensor."""

    def make(_: Path) -> None:
        total = sum(tensor.size_bytes for tensor in header.tensors)
        data = np.memmap(header.path, dtype=np.uint8, mode="r")
        with progress.task(text("weights.step.check", file=header.path.name), total) as task:
            for tensor in header.tensors:
                if not _is_finite(data[tensor.offset : tensor.offset + tensor.size_bytes], tensor):
                    raise BadInputError("weights.not_finite", path=str(header.path), tensor=tensor.name)
                task.advance(tensor.size_bytes)

    store.get_or_make("checks", {"finite": 1, "sha256": sha256}, make)


def _is_finite(data: npt.NDArray[np.uint8], tensor: TensorInfo) -> bool:
    _, block_bytes = GGML_QUANT_SIZES[tensor.type]
    step = _CHUNK // block_bytes * block_bytes
    return all(_chunk_is_finite(data[at : at + step], tensor.type, block_bytes) for at in range(0, len(data), step))


def _chunk_is_finite(chunk: npt.NDArray[np.uint8], kind: GGMLQuantizationType, block_bytes: int) -> bool:
    if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F64):
        return bool(np.isfinite(chunk.view(np.float32 if kind == GGMLQuantizationType.F32 else np.float64)).all())
    if kind == GGMLQuantizationType.BF16:
        return bool(((chunk.view(np.uint16) & 0x7F80) != 0x7F80).all())
    blocks = chunk.view(np.uint16).reshape(-1, block_bytes // 2) if kind in _SCALE_WORDS else None
    if blocks is None:  # a type whose scales are stored otherwise: not looked at
        return True
    return all(bool(((blocks[:, word] & 0x7C00) != 0x7C00).all()) for word in _SCALE_WORDS[kind])
