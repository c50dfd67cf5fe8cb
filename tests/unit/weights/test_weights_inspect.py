"""``weights.inspect``: what each format says of itself."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes import tiny_models

from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.spec import codec
from sampan.spec.model_report import ModelReport
from sampan.weights.facts import ConversionTable, conversion_table, engine_table
from sampan.weights.inspect.inspect import inspect
from sampan.weights.inspect.parts import shards_of
from sampan.weights.inspect.support import pre_tokenizer_of

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"
Look = Callable[..., ModelReport]


@pytest.fixture
def look(store: DiskStore) -> Look:
    def run(path: Path, hash_all: bool = False) -> ModelReport:
        return inspect(path, hash_all=hash_all, store=store, progress=SilentProgress())

    return run


def test_a_gguf(look: Look, tmp_path: Path) -> None:
    path = tiny_models.llama_gguf(tmp_path / "Tiny-Chat.F32.gguf", tokenizer__chat_template="{{ messages }}")
    report = look(path)
    assert (report.format, report.name, report.architecture, report.task) == ("gguf", "Tiny-Chat", "llama", "chat")
    assert (report.layers, report.heads, report.kv_heads, report.embedding_length) == (2, 4, 2, 32)
    assert (report.context_length, report.vocabulary) == (64, 260)
    assert (report.tokenizer, report.tokenizer_pre, report.numbers) == ("gpt2", "smollm", "F32")
    assert (report.support.verdict, report.support.reasons) == ("loads", ())
    assert [(each.name, each.findings) for each in report.templates] == [("default", ())]
    assert report.size_bytes == path.stat().st_size
    assert report.files[0].sha256 is not None


def test_the_report_survives_its_json(look: Look, tmp_path: Path) -> None:
    report = look(tiny_models.llama_gguf(tmp_path / "m.gguf", tokenizer__chat_template="{{ x.__class__ }}"))
    assert codec.from_json(ModelReport, codec.to_json(report), where="-") == report


def test_a_sentence_transformers_folder(look: Look, tmp_path: Path) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny-bert")
    report = look(root)
    assert (report.format, report.name, report.architecture) == ("sentence-transformers", "tiny-bert", "BertModel")
    assert (report.support.verdict, report.support.architecture) == ("imports", "bert")
    assert (report.pooling, report.normalize, report.task) == ("mean", True, "embedding")
    assert (report.layers, report.heads, report.tokenizer, report.numbers) == (2, 4, "WordPiece", "F32")
    assert report.parameters is not None
    assert report.parameters > 1000
    assert {file.path for file in report.files} >= {"config.json", "model.safetensors", "1_Pooling/config.json"}
    assert all(file.sha256 for file in report.files)


def test_the_safetensors_file_stands_for_its_folder(look: Look, tmp_path: Path) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny-bert")
    assert replace(look(root / "model.safetensors"), name="tiny-bert") == look(root)


def test_a_class_that_only_the_converter_knows(look: Look, tmp_path: Path) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    config = json.loads((root / "config.json").read_text())
    config["architectures"] = ["MPTForCausalLM"]
    tiny_models.write_json(root / "config.json", config)
    support = look(root).support
    assert (support.verdict, support.architecture, support.reasons) == ("converts", "mpt", ())


def test_a_class_of_ours_that_is_unusual_is_not_converted(look: Look, tmp_path: Path) -> None:
    support = look(tiny_models.bert_folder(tmp_path / "tiny", hidden_act="relu")).support
    assert support.verdict == "no"
    assert support.reasons[0].key == "support.import"


def test_a_class_that_nobody_knows(look: Look, tmp_path: Path) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    config = json.loads((root / "config.json").read_text())
    config |= {"architectures": ["FutureModel"], "auto_map": {"AutoModel": "modeling_future.FutureModel"}}
    tiny_models.write_json(root / "config.json", config)
    report = look(root)
    assert (report.support.verdict, report.support.reasons[0].values) == ("no", (("value", "FutureModel"),))
    assert "note.remote_code" in {note.key for note in report.notes}


def test_pickles_beside_sound_weights_are_noted(look: Look, tmp_path: Path) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    (root / "pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")
    assert "note.pickles" in {note.key for note in look(root).notes}


def test_an_architecture_that_the_engine_is_too_old_for_is_reported_not_refused(look: Look, tmp_path: Path) -> None:
    fields = [
        tiny_models.field("general.architecture", 8, tiny_models.string("future9")),
        tiny_models.field("tokenizer.ggml.model", 8, tiny_models.string("gpt2")),
        tiny_models.field("tokenizer.ggml.pre", 8, tiny_models.string("future-pre")),
    ]
    path = tmp_path / "new.gguf"
    path.write_bytes(tiny_models.raw_gguf(*fields, tensors=(tiny_models.raw_tensor("t", (4,)),), data=bytes(16)))
    support = look(path).support
    assert support.verdict == "no"
    assert [reason.key for reason in support.reasons] == ["support.architecture", "support.pre_tokenizer"]


def test_native_shards_are_one_model(look: Look, tmp_path: Path) -> None:
    for number in (1, 2):
        path = tmp_path / f"m-{number:05d}-of-00002.gguf"
        tiny_models.llama_gguf(path, split__count=2, split__no=number - 1)
    report = look(tmp_path / "m-00002-of-00002.gguf")
    assert [file.path for file in report.files] == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    assert "note.shards" in {note.key for note in report.notes}
    assert look(tmp_path).files == report.files


def test_a_name_like_a_shard_with_impossible_numbers_is_a_file(tmp_path: Path) -> None:
    for name in ("m-00003-of-00002.gguf", "m-00000-of-00000.gguf", "m-00001-of-99999.gguf"):
        assert shards_of(tmp_path / name) == (tmp_path / name,)


@pytest.mark.parametrize(("name", "licence"), [("tiny.onnx", None), ("tiny_ext.onnx", "apache-2.0")])
def test_onnx(look: Look, name: str, licence: str | None) -> None:
    report = look(GRAPHS / name)
    assert (report.format, report.parameters, report.numbers, report.licence) == ("onnx", 104, "FLOAT", licence)
    assert [(each.name, each.dtype, each.shape) for each in report.inputs] == [
        ("input_ids", "INT64", ("batch", "sequence"))
    ]
    assert [each.shape for each in report.outputs] == [("batch", "sequence", "8")]
    assert report.support.verdict == "no"
    assert len(report.files) == (2 if licence else 1)


@pytest.mark.parametrize(("folder", "made_by"), [("paddle2", "Paddle 3.3.1"), ("paddle3", "Paddle PIR 4")])
def test_paddle(look: Look, folder: str, made_by: str) -> None:
    report = look(GRAPHS / folder)
    assert (report.format, report.name, report.parameters, report.numbers) == ("paddle", folder, 132, "FP32")
    assert (report.made_by, report.support.reasons[0].key) == (made_by, "support.paddle")
    assert [(each.name, each.dtype, each.shape) for each in report.inputs] == [("input_ids", "INT64", ("-1", "-1"))]
    assert [each.shape for each in report.outputs] == [("-1", "-1", "4")]
    assert look(GRAPHS / folder / "inference.pdiparams").path == report.path


def test_a_hub_cache_of_links_is_read_through_them(look: Look, tmp_path: Path) -> None:
    plain = tiny_models.bert_folder(tmp_path / "plain")
    snapshot = tmp_path / "models--org--tiny" / "snapshots" / "abc"
    blobs = tmp_path / "models--org--tiny" / "blobs"
    blobs.mkdir(parents=True)
    for number, path in enumerate(path for path in plain.rglob("*") if path.is_file()):
        link = snapshot / path.relative_to(plain)
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, blobs / str(number))
        link.symlink_to(Path(*[".."] * len(link.parent.relative_to(blobs.parent).parts)) / "blobs" / str(number))
    report = look(snapshot)
    assert (report.name, report.support.verdict) == ("tiny", "imports")


def test_large_files_are_hashed_when_asked_and_then_remembered(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sampan.weights.inspect.inspect.HASH_BELOW", 10)
    path = tiny_models.llama_gguf(tmp_path / "m.gguf")
    assert look(path).files[0].sha256 is None
    digest = look(path, hash_all=True).files[0].sha256
    assert digest is not None
    assert look(path).files[0].sha256 == digest


def test_a_pre_tokenizer_is_recognised_by_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny_models.bert_folder(tmp_path / "tiny") / "tokenizer.json"
    assert pre_tokenizer_of(path) is None
    digest = hashlib.sha256(b"[2, 5, 6, 3]").hexdigest()  # [CLS] the boat [SEP], by their places in the vocabulary
    table = ConversionTable("the boat", {}, {digest: "known"})
    monkeypatch.setattr("sampan.weights.inspect.support.conversion_table", lambda: table)
    assert pre_tokenizer_of(path) == "known"


def test_the_converter_and_the_engine_know_the_same_architectures() -> None:
    assert set(conversion_table().classes.values()) <= engine_table().architectures
    assert conversion_table().classes["XLMRobertaModel"] == "bert"
    assert conversion_table().classes["Qwen3ForCausalLM"] == "qwen3"


def test_a_sound_folder_with_a_step_that_no_engine_has_is_described(look: Look, tmp_path: Path) -> None:
    root = tiny_models.bert_folder(tmp_path / "dense")
    steps = json.loads((root / "modules.json").read_text())
    dense = {"idx": 3, "path": "3_Dense", "type": "sentence_transformers.models.Dense"}
    tiny_models.write_json(root / "modules.json", [*steps, dense])
    report = look(root)
    assert (report.support.verdict, report.pooling) == ("no", "mean")
    assert "Dense" in str(report.support.reasons)
