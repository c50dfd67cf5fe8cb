"""Which way a model folder goes: our own import, the converter, or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import tiny_models

from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, UsageError
from sampan.flow import importing, stages
from sampan.flow.tools import Tools, workshop_tools

Calls = list[tuple[Path, str, str]]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    monkeypatch.setenv("SAMPAN_CACHE", str(tmp_path / "store"))
    return workshop_tools(SilentProgress())


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found: Calls = []

    def record(root: Path, kind: str, _tools: Tools, torch: str = "", pre: str = "") -> None:
        found.append((root, kind, torch + pre))

    monkeypatch.setattr(importing, "by_converter", record)
    return found


def test_a_class_of_ours_is_imported_without_the_converter(tmp_path: Path, tools: Tools, calls: Calls) -> None:
    root = tiny_models.bert_folder(tmp_path / "bert")
    assert importing.import_model(str(root), importing.ORIGINAL, tools).quantization == "F32"
    assert importing.import_model(str(root), "f16", tools).quantization == "F16"
    assert calls == []


def test_other_classes_go_to_the_converter_with_the_asked_type(tmp_path: Path, tools: Tools, calls: Calls) -> None:
    root = tiny_models.bert_folder(tmp_path / "qwen", architectures=["Qwen3ForCausalLM"])
    importing.import_model(str(root), importing.ORIGINAL, tools, torch="torch==1")
    importing.import_model(str(root), "bf16", tools)
    stages.weights(str(root), "auto", tools)
    stages.weights(str(root), "f16", tools)
    assert [(place, kind) for place, kind, _ in calls] == [
        (root, "original"),
        (root, "bf16"),
        (root, "original"),
        (root, "f16"),
    ]
    assert calls[0][2] == "torch==1"


def test_a_named_pre_tokenizer_reaches_the_converter_and_must_be_the_engines(
    tmp_path: Path, tools: Tools, calls: Calls
) -> None:
    root = tiny_models.bert_folder(tmp_path / "qwen", architectures=["Qwen3ForCausalLM"])
    importing.import_model(str(root), "f16", tools, torch="", pre="qwen2")
    assert calls == [(root, "f16", "qwen2")]
    with pytest.raises(UsageError) as caught:
        importing.import_model(str(root), "f16", tools, pre="qwen3")
    assert caught.value.key == "import.pre_unknown"
    assert "qwen2" in caught.value.message


def test_a_gguf_is_taken_as_it_is(tmp_path: Path, tools: Tools, calls: Calls) -> None:
    path = tiny_models.llama_gguf(tmp_path / "tiny.gguf")
    assert importing.import_model(str(path), importing.ORIGINAL, tools).path == str(path)
    assert calls == []


def test_damage_is_no_reason_to_try_the_converter(tmp_path: Path, tools: Tools, calls: Calls) -> None:
    root = tiny_models.bert_folder(tmp_path / "bert")
    (root / "model.safetensors").write_bytes(b"\0" * 40)
    with pytest.raises(BadInputError):
        importing.import_model(str(root), "f32", tools)
    with pytest.raises(UsageError):
        importing.import_model(str(root), "q4_0", tools)
    with pytest.raises(UsageError) as caught:
        stages.weights(str(root), "q7", tools)
    assert caught.value.key == "gate.type"
    assert calls == []
