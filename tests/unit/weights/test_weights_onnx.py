"""An encoder as ONNX: what the script is asked, what of its answer is believed, and what inspect reads back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import tiny_models

from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import (
    BadInputError,
    BuildError,
    ExitCode,
    MissingToolError,
    SampanError,
    UsageError,
    VerificationError,
)
from sampan.flow.converter_env import TORCH
from sampan.flow.onnx_import import import_onnx
from sampan.flow.tools import Tools, workshop_tools
from sampan.spec import codec
from sampan.spec.onnx import OnnxInfo
from sampan.spec.ports import Completed
from sampan.weights.converter.onnx import Export, Exporter
from sampan.weights.folder import read_folder
from sampan.weights.importing import folder_truth
from sampan.weights.inspect.onnx_facts import FACTS, read_facts


@dataclass
class Script:
    """A runner in place of export.py: answers with the golden vectors, each changed by ``change``."""

    change: float = 0.0
    code: int = 0
    output: str = ""
    env: Mapping[str, str] | None = None

    def run(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, **_: Any) -> Completed:
        self.env = env
        if self.code == 0:
            request = json.loads(Path(argv[2]).read_text("utf-8"))
            (Path(request["out"]) / "model.onnx").write_bytes(b"graph")
            (Path(request["out"]) / "tokenizer.json").write_text("{}", "utf-8")
            self._reply(request, Path(argv[3]))
        return Completed(tuple(argv), self.code, self.output)

    def _reply(self, request: Mapping[str, Any], place: Path) -> None:
        golden = folder_truth(Path(request["folder"]), "tiny", progress=SilentProgress())
        assert request["texts"] == [item.text for item in golden.embeddings]
        vectors = [[item.vector[0] + self.change, *item.vector[1:]] for item in golden.embeddings]
        reply = {"inputs": ["input_ids"], "output": "last_hidden_state", "pad_token": 0, "architecture": "BertModel"}
        place.write_text(json.dumps({**reply, "checked_by": "onnxruntime 1", "vectors": vectors}), "utf-8")


@pytest.fixture
def job(tmp_path: Path) -> Export:
    root = tiny_models.bert_folder(tmp_path / "model")
    out = tmp_path / "out"
    out.mkdir()
    return Export(read_folder(root), root, "tiny", folder_truth(root, "tiny", progress=SilentProgress()), out)


def _exporter(script: Script, store: DiskStore) -> Exporter:
    return Exporter(Path("/env/python"), Path("/export.py"), script, store)


def test_the_folder_holds_what_the_graph_does_not_say(job: Export, store: DiskStore) -> None:
    script = Script()
    info = _exporter(script, store).export(job, SilentProgress())
    assert {path.name for path in job.out.iterdir()} == {"model.onnx", "tokenizer.json", "golden.json", "onnx.json"}
    assert (info.pooling, info.normalize, info.longest_text, info.licence) == ("mean", True, 24, "apache-2.0")
    assert info.cosine == pytest.approx(1, abs=1e-6)
    assert codec.load(OnnxInfo, job.out / FACTS) == info
    assert script.env is not None
    assert script.env["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize("change", [0.1, float("nan")])
def test_a_graph_that_answers_otherwise_is_refused(job: Export, store: DiskStore, change: float) -> None:
    with pytest.raises(VerificationError) as caught:
        _exporter(Script(change), store).export(job, SilentProgress())
    assert caught.value.key == "import.onnx_differs"
    assert not (job.out / FACTS).exists()


def test_why_the_script_failed_is_told(job: Export, store: DiskStore) -> None:
    with pytest.raises(BuildError) as caught:
        _exporter(Script(code=1, output="Traceback\nMemoryError: no room\n"), store).export(job, SilentProgress())
    assert caught.value.key == "import.onnx"
    assert "no room" in caught.value.message


def test_facts_of_another_graph_are_not_believed(job: Export, store: DiskStore) -> None:
    info = _exporter(Script(), store).export(job, SilentProgress())
    graph = job.out / "model.onnx"
    assert read_facts(graph, info.size_bytes) == info
    assert read_facts(graph, info.size_bytes + 1) is None
    assert read_facts(job.out / "other.onnx", info.size_bytes) is None
    (job.out / FACTS).write_text('{"schema": "another/1"}', "utf-8")
    assert read_facts(graph, info.size_bytes) is None
    (job.out / FACTS).write_text('{"schema": "sampan/onnx/1"}', "utf-8")
    with pytest.raises(BadInputError):
        read_facts(graph, info.size_bytes)


@dataclass
class NoTorch:
    """A machine whose pip finds everything but PyTorch."""

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        found = TORCH not in argv
        return Completed(tuple(argv), 0 if found else 1, "" if found else "ERROR: No matching distribution found\n")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    monkeypatch.setenv("SAMPAN_CACHE", str(tmp_path / "cache"))
    return replace(workshop_tools(SilentProgress()), runner=NoTorch())


def _refused(source: Path, kind: str, tools: Tools) -> SampanError:
    with pytest.raises(SampanError) as caught:
        import_onnx(str(source), kind, tools)
    return caught.value


def test_without_pytorch_it_is_said_how_to_name_one(tmp_path: Path, tools: Tools) -> None:
    error = _refused(tiny_models.bert_folder(tmp_path / "bert"), "f32", tools)
    assert isinstance(error, MissingToolError)
    assert (error.key, error.exit_code) == ("import.torch", ExitCode.MISSING_TOOL)


def test_what_cannot_be_written_is_refused_before_anything_is_installed(tmp_path: Path, tools: Tools) -> None:
    root = tiny_models.bert_folder(tmp_path / "bert")
    assert isinstance(_refused(root, "f16", tools), UsageError)
    assert _refused(tiny_models.llama_gguf(tmp_path / "tiny.gguf"), "f32", tools).key == "import.onnx_folder"
    other = tiny_models.bert_folder(tmp_path / "other", architectures=["Qwen3ForCausalLM"])
    assert _refused(other, "f32", tools).key == "import.onnx_class"
    (root / "model.safetensors").write_bytes(b"\0" * 40)
    assert _refused(root, "f32", tools).key == "weights.safetensors"
    assert not list((tmp_path / "cache").glob("made/converter/*"))
