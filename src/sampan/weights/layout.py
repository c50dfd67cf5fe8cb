"""Which tensors an architecture has, and their shapes (rows first), in the order of writing.

Checked before anything is computed: a file whose description and tensors differ is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sampan.errors import BadInputError

Shapes = dict[str, tuple[int, ...]]


def bert_shapes(*, vocabulary: int, positions: int, token_types: int, width: int, inner: int, layers: int) -> Shapes:
    """The tensors of an encoder of architecture ``bert``, under GGUF's names."""
    shapes: Shapes = {
        "token_embd.weight": (vocabulary, width),
        "position_embd.weight": (positions, width),
        "token_types.weight": (token_types, width),
        "token_embd_norm.weight": (width,),
        "token_embd_norm.bias": (width,),
    }
    matrices = {"attn_q": (width, width), "attn_k": (width, width), "attn_v": (width, width)}
    matrices |= {"attn_output": (width, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}
    for layer in range(layers):
        for name, (rows, columns) in matrices.items():
            shapes[f"blk.{layer}.{name}.weight"] = (rows, columns)
            shapes[f"blk.{layer}.{name}.bias"] = (rows,)
        for name in ("attn_output_norm", "layer_output_norm"):
            shapes[f"blk.{layer}.{name}.weight"] = shapes[f"blk.{layer}.{name}.bias"] = (width,)
    return shapes


def llama_shapes(*, vocabulary: int, width: int, inner: int, layers: int, query: int, key: int) -> Shapes:
    """The tensors of a decoder of architecture ``llama`` with tied embeddings; ``query`` and ``key`` in numbers."""
    shapes: Shapes = {"token_embd.weight": (vocabulary, width), "output_norm.weight": (width,)}
    matrices: Shapes = {
        "attn_norm": (width,),
        "attn_q": (query, width),
        "attn_k": (key, width),
        "attn_v": (key, width),
        "attn_output": (width, query),
        "ffn_norm": (width,),
        "ffn_gate": (inner, width),
        "ffn_up": (inner, width),
        "ffn_down": (width, inner),
    }
    for layer in range(layers):
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in matrices.items()}
    return shapes


def require_shapes(
    path: object, expected: Mapping[str, tuple[int, ...]], found: Callable[[str], tuple[int, ...] | None]
) -> None:
    """Each expected tensor is there and has its shape. ``found`` gives None for none. Raises BadInputError."""
    for name, shape in expected.items():
        actual = found(name)
        if actual is None:
            raise BadInputError("weights.tensor_missing", path=str(path), tensor=name)
        if actual != shape:
            detail = f"{list(actual)} ≠ {list(shape)}"
            raise BadInputError("weights.tensor_shape", path=str(path), tensor=name, detail=detail)
