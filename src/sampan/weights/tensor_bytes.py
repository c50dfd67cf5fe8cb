"""How a GGUF's bytes are used: what an engine may reorder in memory, and what it only looks up."""

from __future__ import annotations

from sampan.spec.weights import TensorBytes
from sampan.weights.gguf_header import GgufHeader, TensorInfo

_TABLES = ("token_embd.", "position_embd.", "token_types.", "per_layer_token_embd.")
_TOKENS, _OUTPUT = "token_embd.weight", "output.weight"
_ROWS = 8  # llama.cpp reorders by eight rows (ggml-cpu/repack.cpp)
_MATRIX_DIMENSIONS = 2


def tensor_bytes(header: GgufHeader) -> tuple[TensorBytes, ...]:
    """Sums by use and type, sorted. A decoder without an output matrix of its own multiplies by its tokens' table."""
    names = {tensor.name for tensor in header.tensors}
    is_tied = _OUTPUT not in names and "output_norm.weight" in names
    sums: dict[tuple[str, str], int] = {}
    for tensor in header.tensors:
        key = (_use(tensor, is_tied=is_tied), tensor.type.name)
        sums[key] = sums.get(key, 0) + tensor.size_bytes
    return tuple(TensorBytes(use, kind, size) for (use, kind), size in sorted(sums.items()))


def _use(tensor: TensorInfo, *, is_tied: bool) -> str:
    if tensor.name == _TOKENS and is_tied:
        return "tied"
    is_matrix = len(tensor.shape) >= _MATRIX_DIMENSIONS and tensor.shape[1] % _ROWS == 0
    return "matrix" if is_matrix and not tensor.name.startswith(_TABLES) else "other"
