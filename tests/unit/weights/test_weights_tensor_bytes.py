"""Bytes by use: what the plan's memory table stands on."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.tiny_models import llama_gguf

from sampan.spec.weights import TensorBytes
from sampan.weights.gguf_header import read_header
from sampan.weights.tensor_bytes import tensor_bytes


def test_a_tied_table_of_tokens_is_told_apart_and_every_byte_is_counted_once(tmp_path: Path) -> None:
    header = read_header(llama_gguf(tmp_path / "m.gguf"))
    found = {(each.use, each.type): each.bytes for each in tensor_bytes(header)}
    assert found["tied", "F32"] == 260 * 32 * 4
    assert sum(found.values()) == sum(tensor.size_bytes for tensor in header.tensors)
    assert found["matrix", "F32"] > found["other", "F32"] > 0


def test_sums_are_in_one_order(tmp_path: Path) -> None:
    found = tensor_bytes(read_header(llama_gguf(tmp_path / "m.gguf")))
    assert list(found) == sorted(found, key=lambda each: (each.use, each.type))
    assert all(isinstance(each, TensorBytes) for each in found)
