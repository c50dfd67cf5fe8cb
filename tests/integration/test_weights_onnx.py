"""Encoders as ONNX: run by ONNX Runtime as a reader of ``onnx.json`` would, against the truth."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fakes import tiny_models
from tests.integration import converter_tools
from typer.testing import CliRunner

from sampan.cli.main import build_app
from sampan.edge.progress import SilentProgress
from sampan.flow import onnx_import
from sampan.flow.converter_env import TORCH, exporter
from sampan.flow.tools import Tools
from sampan.spec import codec
from sampan.spec.onnx import OnnxInfo
from sampan.weights.inspect.inspect import inspect

pytestmark = pytest.mark.integration
TRUTH = json.loads((Path(__file__).parents[1] / "data/weights/true_answers.json").read_text("utf-8"))

# By the library alone, from the folder alone: nothing of sampan and nothing of transformers.
READER = """
import json, sys
from pathlib import Path
import numpy as np, onnxruntime
from tokenizers import Tokenizer
root = Path(sys.argv[1])
texts = json.loads(sys.stdin.read())
facts = json.loads((root / "onnx.json").read_text("utf-8"))
tokenizer = Tokenizer.from_file(str(root / facts["tokenizer"]))
tokenizer.enable_truncation(facts["longest_text"])
tokenizer.enable_padding(pad_id=facts["pad_token"])
made = tokenizer.encode_batch(texts)
given = {"input_ids": [one.ids for one in made], "attention_mask": [one.attention_mask for one in made],
         "token_type_ids": [one.type_ids for one in made]}
session = onnxruntime.InferenceSession(str(root / facts["file_name"]), providers=["CPUExecutionProvider"])
given = {name: np.array(given[name], np.int64) for name in facts["inputs"]}
states = session.run([facts["output"]], given)[0]
mask = given["attention_mask"][..., None]
vectors = {"mean": (states * mask).sum(1) / mask.sum(1), "cls": states[:, 0]}[facts["pooling"]]
if facts["normalize"]:
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
print(json.dumps(vectors.tolist()))
"""


@pytest.fixture
def tools() -> Tools:
    return converter_tools.tools()


def _read(root: Path, texts: list[str], tools: Tools) -> Any:
    done = tools.runner.run([str(exporter(tools).python), "-c", READER, str(root)], stdin=json.dumps(texts).encode())
    assert done.returncode == 0, done.output
    return np.array(json.loads(done.output.splitlines()[-1]))


def test_minilm_as_onnx_is_what_sentence_transformers_says(tmp_path: Path, tools: Tools) -> None:
    out = tmp_path / "mini lm 模型"
    run = CliRunner().invoke(
        build_app(), ["weights", "import", converter_tools.MINILM, "--to", "onnx", "--out", str(out)]
    )
    assert run.exit_code == 0, run.output
    items = TRUTH["embeddings"]
    vectors = _read(out, [item["text"] for item in items], tools)
    for vector, item in zip(vectors, items, strict=True):
        truth = np.array(item["vector"])
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
        assert float(vector @ truth / np.linalg.norm(truth)) > 0.9999, item["text"]
    report = inspect(out, hash_all=False, store=tools.store, progress=SilentProgress())
    assert (report.format, report.pooling, report.normalize, report.longest_text) == ("onnx", "mean", True, 256)
    assert report.name == "all-MiniLM-L6-v2"


@pytest.mark.parametrize("beside", [False, True])
def test_xlm_roberta_with_numbers_in_the_graph_and_beside_it(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    root = tiny_models.xlm_roberta_folder(tmp_path / "tiny")
    tiny_models.write_sentence_transformers(root, "cls_token")
    largest = 0 if beside else 1 << 30
    monkeypatch.setattr(onnx_import, "exporter", lambda *_: replace(exporter(tools, TORCH), largest=largest))
    info, made = onnx_import.import_onnx(str(root), "original", tools)
    assert info.external == (("model.onnx.data",) if beside else ())
    assert info.pooling == "cls"
    assert info.cosine > 0.99999
    assert codec.load(OnnxInfo, made / "onnx.json").sha256 == info.sha256
    report = inspect(made, hash_all=False, store=tools.store, progress=SilentProgress())
    assert (report.size_bytes, report.pooling) == (info.size_bytes, "cls")
