"""The numpy reference gives what PyTorch's transformers gave; see tests/data/weights/make_tiny_truth.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fakes import tiny_models

from sampan.weights import golden_gguf
from sampan.weights.describe import Origin, describe
from sampan.weights.folder import read_folder
from sampan.weights.folder_tensors import open_tensors
from sampan.weights.gguf_header import GgufHeader, read_header
from sampan.weights.reference.bert import BertShape, encode
from sampan.weights.reference.llama import Llama
from sampan.weights.reference.tensors import GgufTensors
from sampan.weights.reference.tokenizer import NoReferenceError, from_file, from_gguf

TRUTH: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data/weights/tiny_truth.json").read_text("utf-8"))


@pytest.mark.parametrize(("name", "pooling"), [("bert", "mean"), ("bert-cls", "cls"), ("xlm-roberta", "mean")])
def test_the_encoder_equals_pytorch(tmp_path: Path, name: str, pooling: str) -> None:
    root = tmp_path / name
    folder = read_folder(tiny_models.xlm_roberta_folder(root) if "xlm" in name else tiny_models.bert_folder(root))
    tokenizer = from_file(folder.model / "tokenizer.json")
    shape = BertShape(folder.layers, folder.heads, folder.epsilon, pooling)
    ids = [tokenizer.encode(item["text"]).ids for item in TRUTH[name]]
    assert ids == [item["ids"] for item in TRUTH[name]]
    for vector, item in zip(encode(open_tensors(folder), shape, ids), TRUTH[name], strict=True):
        assert np.abs(vector - np.array(item["vector"])).max() < 3e-6


def test_the_decoder_takes_the_tokens_that_pytorch_takes(tmp_path: Path) -> None:
    header = read_header(tiny_models.llama_gguf(tmp_path / "tiny.gguf"))
    truth = TRUTH["llama"]
    choices = _llama(header).greedy(truth["prompt"], len(truth["tokens"]), frozenset())
    assert [choice.token for choice in choices] == truth["tokens"]
    assert np.abs(np.array([choice.margin for choice in choices]) - truth["margins"]).max() < 1e-3


def test_a_stop_token_ends_the_continuation(tmp_path: Path) -> None:
    header = read_header(tiny_models.llama_gguf(tmp_path / "tiny.gguf"))
    truth = TRUTH["llama"]
    stop = truth["tokens"][3]
    choices = _llama(header).greedy(truth["prompt"], 12, frozenset({stop}))
    assert [choice.token for choice in choices] == truth["tokens"][: truth["tokens"].index(stop)]


def _llama(header: GgufHeader) -> Llama:
    info = describe(header, "llama", Origin("tiny", "tiny", "gguf", "0"))
    return Llama(GgufTensors.of(header), golden_gguf.llama_shape(header, info))


@pytest.mark.parametrize(
    "fields",
    [{"llama__rope__scaling__type": "yarn"}, {"llama__rope__scaling__type": "linear"}],
)
def test_what_the_decoder_does_not_compute_has_no_reference(tmp_path: Path, fields: dict[str, object]) -> None:
    header = read_header(tiny_models.llama_gguf(tmp_path / "tiny.gguf", **fields))
    with pytest.raises(NoReferenceError, match=r"weights\.golden\.architecture"):
        _llama(header)


def test_byte_level_bpe_gives_the_bytes(tmp_path: Path) -> None:
    header = read_header(tiny_models.llama_gguf(tmp_path / "tiny.gguf"))
    tokenizer = from_gguf(header)
    text = "<|im_start|>今 12th"
    assert tokenizer.encode(text).ids == [1, *(3 + byte for byte in "今 12".encode()), 259]
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_an_unknown_cut_before_bpe_has_no_reference(tmp_path: Path) -> None:
    header = read_header(tiny_models.llama_gguf(tmp_path / "tiny.gguf"))
    header.fields["tokenizer.ggml.pre"] = "somebody-elses"
    with pytest.raises(NoReferenceError, match=r"weights\.golden\.tokenizer"):
        from_gguf(header)
