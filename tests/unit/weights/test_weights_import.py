"""Folders of the BERT class become GGUF files that hold what the folder holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, TokenType
from tests.fakes import tiny_models
from tests.unit.weights.conftest import Resolve

from sampan.spec import codec
from sampan.spec.weights import GoldenSet, WeightsInfo
from sampan.weights.folder import read_folder
from sampan.weights.folder_tensors import open_tensors
from sampan.weights.gguf_header import read_header
from sampan.weights.reference.tokenizer import from_file, from_gguf

TEXTS = [
    "the boat carries cargo",
    "The BOATS, to the other shore! 今天 1212",
    "café?",
    "今天 boats",
    "  two   blanks ",
]


def _golden(info: WeightsInfo) -> GoldenSet:
    assert info.golden_path is not None
    return codec.load(GoldenSet, Path(info.golden_path))


def test_a_sentence_transformers_folder_is_described(tmp_path: Path, take: Resolve) -> None:
    info = take(tiny_models.bert_folder(tmp_path / "tiny-bert"), "f32")
    assert (info.name, info.origin, info.architecture, info.task) == (
        "tiny-bert",
        "sentence-transformers",
        "bert",
        "embedding",
    )
    assert (info.layers, info.heads, info.kv_heads, info.embedding_length) == (2, 4, 4, 32)
    assert (info.feed_forward_length, info.context_length, info.vocabulary) == (48, 24, len(tiny_models.WORDS) + 2)
    assert (info.pooling, info.normalize, info.licence, info.quantization) == ("mean", True, "apache-2.0", "F32")
    assert info.file_name == "tiny-bert-F32.gguf" == Path(info.path).name
    tensors = open_tensors(read_folder(tmp_path / "tiny-bert"))
    assert info.parameters == sum(int(np.prod(tensors.shape(name))) for name in tensors.names())


def test_the_gguf_holds_the_tensors_under_the_converters_names(tmp_path: Path, take: Resolve) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    reader = GGUFReader(take(root, "f32").path)
    stored = {tensor.name: tensor.data for tensor in reader.tensors}
    source = tiny_models.bert_tensors(len(tiny_models.WORDS) + 2, tiny_models.POSITIONS, tiny_models.Numbers(7))
    for name, original in {
        "token_embd.weight": "embeddings.word_embeddings.weight",
        "token_embd_norm.bias": "embeddings.LayerNorm.bias",
        "blk.1.attn_k.weight": "encoder.layer.1.attention.self.key.weight",
        "blk.0.attn_output_norm.weight": "encoder.layer.0.attention.output.LayerNorm.weight",
        "blk.1.layer_output_norm.bias": "encoder.layer.1.output.LayerNorm.bias",
        "blk.0.ffn_down.weight": "encoder.layer.0.output.dense.weight",
    }.items():
        assert np.array_equal(stored[name], source[original]), name
    assert len(stored) == len(source)
    assert reader.fields["bert.attention.causal"].contents() is False
    assert reader.fields["bert.pooling_type"].contents() == 1


def test_word_pieces_are_marked_as_the_engine_wants(tmp_path: Path, take: Resolve) -> None:
    fields = read_header(Path(take(tiny_models.bert_folder(tmp_path / "tiny")).path)).fields
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    assert isinstance(tokens, tuple)
    assert isinstance(types, np.ndarray)
    assert tokens[:7] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁the", "▁boat")
    assert tokens[tiny_models.WORDS.index("##ing")] == "ing"
    assert tokens[-2:] == (f"[PAD{len(tokens) - 2}]", f"[PAD{len(tokens) - 1}]")
    assert types.tolist()[3:6] == [TokenType.CONTROL, TokenType.CONTROL, TokenType.NORMAL]
    assert types.tolist()[-1] == TokenType.UNUSED
    assert [fields[f"tokenizer.ggml.{name}_token_id"] for name in ("bos", "eos", "seperator", "unknown")] == [
        2,
        3,
        3,
        1,
    ]
    assert fields["tokenizer.ggml.normalizer.lowercase"] is True
    assert fields["tokenizer.ggml.normalizer.strip_accents"] is True


def test_xlm_roberta_loses_the_positions_that_no_text_uses(tmp_path: Path, take: Resolve) -> None:
    info = take(tiny_models.xlm_roberta_folder(tmp_path / "xlm"), "f32")
    assert (info.origin, info.tokenizer, info.pooling, info.context_length) == ("huggingface", "t5", "mean", 40)
    stored = {tensor.name: tensor.data for tensor in GGUFReader(info.path).tensors}
    source = tiny_models.bert_tensors(len(tiny_models.PIECES) + 3, 42, tiny_models.Numbers(11))
    assert np.array_equal(stored["position_embd.weight"], source["embeddings.position_embeddings.weight"][2:])


def test_unigram_scores_types_and_normalizer_are_kept(tmp_path: Path, take: Resolve) -> None:
    fields = read_header(Path(take(tiny_models.xlm_roberta_folder(tmp_path / "xlm")).path)).fields
    scores, types, charsmap = (
        fields[f"tokenizer.ggml.{n}"] for n in ("scores", "token_type", "precompiled_charsmap")
    )
    assert isinstance(scores, np.ndarray)
    assert isinstance(types, np.ndarray)
    assert isinstance(charsmap, np.ndarray)
    assert scores.tolist()[4:6] == pytest.approx([-1.0, -1.1])
    assert scores.tolist()[-2:] == [-10000.0, -10000.0]
    assert types.tolist()[:5] == [TokenType.CONTROL] * 3 + [TokenType.UNKNOWN, TokenType.NORMAL]
    assert charsmap.tobytes() == tiny_models.HARMLESS_CHARSMAP


@pytest.mark.parametrize("make", [tiny_models.bert_folder, tiny_models.xlm_roberta_folder])
def test_the_vocabulary_in_the_gguf_cuts_texts_like_the_folders_tokenizer(
    tmp_path: Path, take: Resolve, make: type
) -> None:
    root: Path = make(tmp_path / "tiny")
    own, rebuilt = from_file(root / "tokenizer.json"), from_gguf(read_header(Path(take(root).path)))
    for text in TEXTS:
        assert rebuilt.encode(text).ids == own.encode(text).ids, text


@pytest.mark.parametrize(("quantization", "least"), [("f32", 1 - 1e-6), ("f16", 1 - 1e-5), ("q8_0", 0.995)])
def test_each_quantization_keeps_the_golden_vectors(
    tmp_path: Path, take: Resolve, quantization: str, least: float
) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    imported = take(root, quantization)
    from_file_itself = {item.text: item.vector for item in _golden(take(imported.path)).embeddings}
    golden = [item for item in _golden(imported).embeddings if item.text in from_file_itself]
    cosines = [float(np.dot(item.vector, from_file_itself[item.text])) for item in golden]
    assert len(cosines) >= 5
    assert min(cosines) >= least


def test_auto_measures_and_takes_what_keeps_the_vectors(tmp_path: Path, take: Resolve) -> None:
    assert take(tiny_models.bert_folder(tmp_path / "tiny")).quantization == "F16"


def test_auto_falls_back_to_f32_where_f16_cannot_hold_a_number(tmp_path: Path, take: Resolve) -> None:
    def enlarge(tensors: dict[str, tiny_models.Array]) -> None:
        tensors["encoder.layer.0.intermediate.dense.weight"][0, 0] = 1e5

    info = take(tiny_models.bert_folder(tmp_path / "tiny", enlarge))
    assert info.quantization == "F32"


def test_the_golden_set_has_short_long_and_foreign_texts(tmp_path: Path, take: Resolve) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    golden = _golden(take(root))
    count = [len(from_file(root / "tokenizer.json").encode(item.text).ids) for item in golden.embeddings]
    assert min(count) == 3
    assert 20 <= max(count) <= 24  # max_seq_length
    assert all(abs(np.linalg.norm(item.vector) - 1) < 1e-5 for item in golden.embeddings)
    assert golden.minimum_cosine == 0.9995


def test_prefixes_come_from_the_models_prompts(tmp_path: Path, take: Resolve) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    tiny_models.write_json(root / "config_sentence_transformers.json", prompts)
    info = take(root)
    assert (info.query_prefix, info.passage_prefix) == ("query: ", "passage: ")


def test_a_nested_layout_is_followed(tmp_path: Path, take: Resolve) -> None:
    tiny_models.bert_folder(tmp_path / "root" / "0_Transformer")
    (tmp_path / "root" / "0_Transformer" / "modules.json").unlink()
    tiny_models.write_sentence_transformers(tmp_path / "root", pooling="cls_token", model="0_Transformer")
    info = take(tmp_path / "root")
    assert (info.pooling, info.name, info.context_length) == ("cls", "root", 24)


def test_shards_and_old_names_are_read(tmp_path: Path, take: Resolve) -> None:
    from safetensors.numpy import load_file, save_file

    root = tiny_models.bert_folder(tmp_path / "tiny")
    plain = take(root, "f32")
    tensors = load_file(root / "model.safetensors")
    (root / "model.safetensors").unlink()
    old = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
        for name, t in tensors.items()
    }
    halves = {"a.safetensors": sorted(old)[::2], "b.safetensors": sorted(old)[1::2]}
    for file, names in halves.items():
        save_file({name: old[name] for name in names}, root / file)
    weight_map = {name: file for file, names in halves.items() for name in names}
    tiny_models.write_json(root / "model.safetensors.index.json", {"weight_map": weight_map})
    assert take(root, "f32").sha256 == plain.sha256


def test_bfloat16_folders_are_read(tmp_path: Path, take: Resolve) -> None:
    from safetensors.numpy import load_file

    root = tiny_models.bert_folder(tmp_path / "tiny")
    tensors = load_file(root / "model.safetensors")
    upper = {name: (t.view(np.uint32) >> 16).astype(np.uint16) for name, t in tensors.items()}
    (root / "model.safetensors").write_bytes(tiny_models.raw_safetensors("BF16", upper))
    stored = {tensor.name: tensor.data for tensor in GGUFReader(take(root, "f32").path).tensors}
    name = "embeddings.word_embeddings.weight"
    expected = (upper[name].astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(stored["token_embd.weight"], expected)


def test_the_same_folder_gives_the_same_bytes_from_another_place_and_store(tmp_path: Path, take: Resolve) -> None:
    one = take(tiny_models.bert_folder(tmp_path / "one" / "tiny"))
    two = take(tiny_models.bert_folder(tmp_path / "two" / "tiny"))
    assert (one.sha256, one.path) == (two.sha256, two.path)
    assert two.source == str(tmp_path / "two" / "tiny")


def test_a_second_run_computes_nothing(tmp_path: Path, take: Resolve, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    first = take(root)
    monkeypatch.setattr("sampan.weights.resolve.import_folder", None)
    assert take(root) == first


def test_a_changed_tensor_is_another_model(tmp_path: Path, take: Resolve) -> None:
    first = take(tiny_models.bert_folder(tmp_path / "tiny"))

    def change(tensors: dict[str, tiny_models.Array]) -> None:
        tensors["embeddings.LayerNorm.bias"] += 1

    assert take(tiny_models.bert_folder(tmp_path / "tiny", change)).path != first.path
