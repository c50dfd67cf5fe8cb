"""Model folders that are incomplete, damaged, hostile or of a kind that the engine would compute wrongly."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fakes import tiny_models
from tests.unit.weights.conftest import Resolve

from sampan.edge.store import DiskStore
from sampan.errors import BadInputError, ExitCode, UsageError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tiny_models.bert_folder(tmp_path / "tiny")


def refused(take: Resolve, path: Path) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        take(path)
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    assert str(path) in caught.value.message
    assert caught.value.hint != f"hint.{caught.value.key}"
    return caught.value


def edit(path: Path, change: Callable[[Any], object]) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    tiny_models.write_json(path, data)


def test_a_folder_without_description_is_refused(tmp_path: Path, take: Resolve) -> None:
    assert refused(take, tmp_path).key == "weights.no_config"


def test_pickles_are_refused_with_the_reason(root: Path, take: Resolve) -> None:
    (root / "model.safetensors").rename(root / "pytorch_model.bin")
    error = refused(take, root)
    assert error.key == "weights.pickle_only"
    assert "pytorch_model.bin" in error.message


def test_a_folder_without_weights_is_refused(root: Path, take: Resolve) -> None:
    (root / "model.safetensors").unlink()
    assert refused(take, root).key == "weights.no_tensors"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_git_lfs_pointer_in_the_folder_is_named(root: Path, take: Resolve, name: str) -> None:
    (root / name).write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123456\n")
    error = refused(take, root)
    assert error.key == "weights.lfs"
    assert name in error.message


def test_a_missing_shard_is_named(root: Path, take: Resolve) -> None:
    weight_map = {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}
    tiny_models.write_json(root / "model.safetensors.index.json", {"weight_map": weight_map})
    error = refused(take, root)
    assert error.key == "weights.shard_missing"
    assert "model-00002-of-00002.safetensors" in error.message


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a/../../b", "", "a\0b"])
def test_an_index_may_not_lead_out_of_the_folder(root: Path, take: Resolve, name: str) -> None:
    tiny_models.write_json(root / "model.safetensors.index.json", {"weight_map": {"a": name}})
    assert refused(take, root).key == "weights.config"


def test_modules_may_not_lead_out_of_the_folder(root: Path, take: Resolve) -> None:
    edit(root / "modules.json", lambda modules: modules[1].update(path="../1_Pooling"))
    assert refused(take, root).key == "weights.config"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "weights.class"),
        ({"architectures": ["BertForSequenceClassification"]}, "weights.class"),
        ({"architectures": ["RobertaModel"]}, "weights.class"),
        ({"hidden_act": "relu"}, "weights.unsupported"),
        ({"position_embedding_type": "relative_key"}, "weights.unsupported"),
        ({"is_decoder": True}, "weights.unsupported"),
        ({"hidden_size": 33}, "weights.config"),
        ({"hidden_size": "32"}, "weights.config"),
        ({"num_hidden_layers": 0}, "weights.config"),
        ({"num_hidden_layers": 1 << 40}, "weights.config"),
        ({"vocab_size": 1 << 24}, "weights.tensor_shape"),
        ({"num_hidden_layers": 3}, "weights.tensor_missing"),
        ({"num_hidden_layers": 1}, "weights.unsupported"),
        ({"intermediate_size": 64}, "weights.tensor_shape"),
        ({"layer_norm_eps": 0}, "weights.config"),
        ({"layer_norm_eps": "small"}, "weights.config"),
        ({"max_position_embeddings": -3}, "weights.config"),
    ],
)
def test_a_description_that_cannot_be_met_is_refused(
    root: Path, take: Resolve, change: dict[str, object], key: str
) -> None:
    edit(root / "config.json", lambda config: config.update(change))
    assert refused(take, root).key == key


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"a": NaN', "\udce4"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "1_Pooling/config.json"])
def test_damaged_json_is_refused(root: Path, take: Resolve, name: str, text: str) -> None:
    (root / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refused(take, root).key in ("weights.config", "weights.unsupported", "file.unreadable")


@pytest.mark.parametrize("modules", [[1], [{}], {"a": 1}, [{"type": 3, "path": ""}]])
def test_odd_modules_are_refused(root: Path, take: Resolve, modules: object) -> None:
    tiny_models.write_json(root / "modules.json", modules)
    assert refused(take, root).key == "weights.config"


def test_a_module_that_the_engine_would_leave_out_is_refused(root: Path, take: Resolve) -> None:
    edit(root / "modules.json", lambda modules: modules.append({"type": "a.b.Dense", "path": "2_Dense"}))
    error = refused(take, root)
    assert error.key == "weights.unsupported"
    assert "Dense" in error.message


@pytest.mark.parametrize("modes", [["max_tokens"], ["mean_tokens", "cls_token"], ["mean_tokens", "max_tokens"], []])
def test_a_pooling_that_the_engine_does_not_have_is_refused(root: Path, take: Resolve, modes: list[str]) -> None:
    tiny_models.write_json(root / "1_Pooling" / "config.json", {f"pooling_mode_{mode}": True for mode in modes})
    assert refused(take, root).key == "weights.unsupported"


def test_a_missing_tokenizer_is_named(root: Path, take: Resolve) -> None:
    (root / "tokenizer.json").unlink()
    assert refused(take, root).key == "weights.no_tokenizer"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda t: t["model"].update(type="BPE"), "weights.unsupported"),
        (lambda t: t["normalizer"].update(type="NFC"), "weights.unsupported"),
        (lambda t: t["model"].update(continuing_subword_prefix="@@"), "weights.unsupported"),
        (lambda t: t["model"]["vocab"].pop("[SEP]") and t.update(added_tokens=[]), "weights.tokenizer"),
        (lambda t: t["model"]["vocab"].update(extra=9999), "weights.tokenizer"),
        (lambda t: t["model"]["vocab"].update(extra=-1), "weights.tokenizer"),
        (lambda t: t["model"]["vocab"].update(extra="7"), "weights.tokenizer"),
        (lambda t: t["added_tokens"].append({"id": 3}), "weights.tokenizer"),
        (lambda t: t["added_tokens"].append(None), "weights.tokenizer"),
        (lambda t: t.update(post_processor={"type": "Unheard"}), "weights.tokenizer"),
    ],
)
def test_a_tokenizer_that_is_damaged_or_of_another_kind_is_refused(
    root: Path, take: Resolve, change: Callable[[Any], object], key: str
) -> None:
    edit(root / "tokenizer.json", change)
    assert refused(take, root).key == key


@pytest.mark.parametrize("charsmap", ["not base64!", "AAAA", "BAAAAGFiY2Q="])
def test_a_hostile_normalizer_is_refused(tmp_path: Path, take: Resolve, charsmap: str) -> None:
    root = tiny_models.xlm_roberta_folder(tmp_path / "xlm")
    edit(root / "tokenizer.json", lambda t: t["normalizer"].update(precompiled_charsmap=charsmap))
    assert refused(take, root).key == "weights.tokenizer"


def _header(entries: object) -> bytes:
    raw = json.dumps(entries).encode()
    return struct.pack("<Q", len(raw)) + raw


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01\x02",
        struct.pack("<Q", 1 << 60),
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 40) + b"{}",
        struct.pack("<Q", 8) + b"not json",
        struct.pack("<Q", 4) + b"\xff\xfe\xfd\xfc",
        _header({"a": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]}}) + bytes(8),
        _header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 1 << 62]}}) + bytes(8),
        _header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}) + bytes(8),
        _header({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}) + bytes(8),
        _header({"a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}}) + bytes(8),
        _header({"a": 1}),
        _header([1, 2]),
        struct.pack("<Q", 50_000) + b"[" * 50_000,
        b"PK\x03\x04" + bytes(60),
    ],
)
def test_hostile_safetensors_are_refused(root: Path, take: Resolve, content: bytes) -> None:
    (root / "model.safetensors").write_bytes(content)
    error = refused(take, root)
    assert error.key == "weights.safetensors"


def test_truncated_safetensors_are_refused(root: Path, take: Resolve) -> None:
    whole = (root / "model.safetensors").read_bytes()
    for size in (4, 9, 600, len(whole) - 1):
        (root / "model.safetensors").write_bytes(whole[:size])
        assert refused(take, root).key == "weights.safetensors"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("tensor", ["embeddings.word_embeddings.weight", "encoder.layer.1.output.dense.bias"])
def test_nan_and_infinity_are_refused_with_the_tensor(
    tmp_path: Path, take: Resolve, tensor: str, value: float
) -> None:
    def spoil(tensors: dict[str, tiny_models.Array]) -> None:
        tensors[tensor].reshape(-1)[-1] = value

    error = refused(take, tiny_models.bert_folder(tmp_path / "tiny", spoil))
    assert error.key == "weights.not_finite"
    assert ("token_embd.weight" if "word" in tensor else "blk.1.ffn_down.bias") in error.message


@pytest.mark.parametrize(("kind", "form"), [("I32", np.int32), ("F8_E4M3", np.uint8)])
def test_weights_in_a_type_that_is_not_read_are_refused_by_its_name(
    kind: str, form: type[np.generic], root: Path, take: Resolve
) -> None:
    tensors = tiny_models.bert_tensors(len(tiny_models.WORDS) + 2, tiny_models.POSITIONS, tiny_models.Numbers(7))
    (root / "model.safetensors").write_bytes(
        tiny_models.raw_safetensors(kind, {name: tensor.astype(form) for name, tensor in tensors.items()})
    )
    error = refused(take, root)
    assert (error.key, kind in error.message) == ("weights.unsupported", True)


def test_numbers_that_float16_cannot_hold_are_named(tmp_path: Path, take: Resolve) -> None:
    def enlarge(tensors: dict[str, tiny_models.Array]) -> None:
        tensors["encoder.layer.0.intermediate.dense.weight"][0, 0] = 1e5

    with pytest.raises(BadInputError) as caught:
        take(tiny_models.bert_folder(tmp_path / "tiny", enlarge), "f16")
    assert caught.value.key == "weights.f16_overflow"


def test_an_unknown_quantization_is_a_usage_error(root: Path, take: Resolve) -> None:
    with pytest.raises(UsageError) as caught:
        take(root, "q3_k_m")
    assert caught.value.key == "weights.quantization"
    assert "q8_0" in caught.value.hint


def test_an_interrupted_import_leaves_nothing(
    root: Path, take: Resolve, store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sampan.weights.folder_tensors.encode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            take(root)
    assert list((store.root / "made" / "weights").iterdir()) == []
    assert take(root).quantization == "F16"


def test_a_quantized_folder_is_refused_by_its_method(root: Path, take: Resolve) -> None:
    config = tiny_models.bert_config(quantization_config={"quant_method": "gptq", "bits": 4})
    tiny_models.write_json(root / "config.json", config)
    error = refused(take, root)
    assert (error.key, "gptq" in error.message) == ("weights.unsupported", True)


def test_an_adapter_is_no_model_and_its_base_is_named(tmp_path: Path, take: Resolve) -> None:
    tiny_models.write_json(tmp_path / "adapter_config.json", {"base_model_name_or_path": "org/base"})
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    error = refused(take, tmp_path)
    assert (error.key, "org/base" in error.message) == ("weights.adapter", True)


def test_a_pooling_folder_that_did_not_come_is_named(root: Path, take: Resolve) -> None:
    (root / "1_Pooling" / "config.json").unlink()
    error = refused(take, root)
    assert (error.key, "1_Pooling/config.json" in error.message) == ("weights.shard_missing", True)
