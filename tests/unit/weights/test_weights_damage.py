"""Damage and confusion: each is recognised before the model is used, with its message, hint and exit code."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes import tiny_models
from tests.fakes.tiny_models import field, raw_gguf, raw_tensor, string
from tests.unit.weights.conftest import Resolve

from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import BadInputError, ExitCode
from sampan.weights.inspect.inspect import inspect
from sampan.weights.inspect.onnx_file import read_onnx
from sampan.weights.inspect.paddle_files import read_paddle
from sampan.weights.inspect.template import LONGEST, examine, is_hostile

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123456\n"
Refused = Callable[..., BadInputError]


@pytest.fixture
def refused(store: DiskStore, take: Resolve) -> Refused:
    """Both doors, ``inspect`` and ``resolve``, refuse the path with the same error."""

    def run(path: Path, both: bool = True) -> BadInputError:
        doors: list[Callable[[], object]] = [
            lambda: inspect(path, hash_all=False, store=store, progress=SilentProgress())
        ]
        doors += [lambda: take(path)] if both else []
        found = []
        for door in doors:
            with pytest.raises(BadInputError) as caught:
                door()
            found.append(caught.value)
        assert {error.key for error in found} == {found[0].key}
        assert found[0].exit_code == ExitCode.BAD_INPUT
        assert str(path.parent) in found[0].message
        assert found[0].hint != f"hint.{found[0].key}"
        return found[0]

    return run


# --- cut short, not fetched ----------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_a_truncated_gguf(tmp_path: Path, refused: Refused, kept: float) -> None:
    path = tiny_models.llama_gguf(tmp_path / "m.gguf")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    assert refused(path).key == "weights.truncated"


def test_a_gguf_that_ends_in_its_header(tmp_path: Path, refused: Refused) -> None:
    path = tiny_models.llama_gguf(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:1000])
    assert refused(path).key == "weights.truncated_header"


@pytest.mark.parametrize("name", ["m.gguf", "m.safetensors", "m.onnx", "inference.pdmodel", "pytorch_model.bin"])
def test_a_git_lfs_pointer(tmp_path: Path, refused: Refused, name: str) -> None:
    (tmp_path / name).write_text(LFS)
    error = refused(tmp_path / name)
    assert error.key == "weights.lfs"
    assert "git lfs pull" in error.hint


@pytest.mark.parametrize(
    ("start", "kind"), [(b"<!DOCTYPE html><html>login", "web page"), (b"PK\x03\x04" + bytes(600), "ZIP")]
)
def test_a_login_page_or_an_archive_is_no_gguf(tmp_path: Path, refused: Refused, start: bytes, kind: str) -> None:
    (tmp_path / "m.gguf").write_bytes(start)
    error = refused(tmp_path / "m.gguf")
    assert (error.key, kind in error.message) == ("weights.not_gguf", True)


# --- parts and shards ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("m.gguf.part1of2", "m.gguf.part2of2"),
        ("m.gguf.part-a", "m.gguf.part-b"),
        ("m.gguf-split-a", "m.gguf-split-b"),
        ("m.gguf.partaa", "m.gguf.partab"),
        ("m.ggufaa", "m.ggufab"),
        ("m.gguf.aa", "m.gguf.ab"),
        ("m.gguf.001", "m.gguf.002"),
        ("xaa", "xab"),
    ],
)
def test_raw_parts_are_named_with_the_command_that_joins_them(
    tmp_path: Path, refused: Refused, names: tuple[str, str]
) -> None:
    whole = tiny_models.llama_gguf(tmp_path / "m.gguf").read_bytes()
    (tmp_path / "m.gguf").unlink()
    for name, data in zip(names, (whole[:9000], whole[9000:]), strict=True):
        (tmp_path / name).write_bytes(data)
    error = refused(tmp_path / names[1])
    assert error.key == "weights.raw_parts"
    assert f"cat {names[0]} {names[1]} > " in error.hint
    assert refused(tmp_path / names[0]).key == refused_in(tmp_path, refused) == "weights.raw_parts"


def refused_in(folder: Path, refused: Refused) -> str:
    return refused(folder / "").key


def test_raw_parts_are_joined_by_number_not_by_spelling(tmp_path: Path, refused: Refused) -> None:
    names = [f"m.gguf.part{number}of11" for number in range(1, 12)]
    for name in names:
        (tmp_path / name).write_bytes(b"GGUF")
    assert f"cat {' '.join(names)} > m.gguf" in refused(tmp_path / names[9]).hint


def test_a_missing_raw_part_is_named(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "m.gguf.part1of3").write_bytes(b"GGUF")
    (tmp_path / "m.gguf.part3of3").write_bytes(b"x")
    error = refused(tmp_path / "m.gguf.part1of3")
    assert error.key == "weights.raw_part_missing"
    assert "m.gguf.part2of3" in error.message


def test_a_missing_shard_is_named_and_joining_is_advised_against(tmp_path: Path, refused: Refused) -> None:
    tiny_models.llama_gguf(tmp_path / "m-00001-of-00003.gguf", split__count=3)
    tiny_models.llama_gguf(tmp_path / "m-00003-of-00003.gguf", split__count=3)
    error = refused(tmp_path / "m-00001-of-00003.gguf")
    assert error.key == "weights.shards_missing"
    assert "m-00002-of-00003.gguf" in error.message
    assert "cat" in error.hint


def test_shards_of_another_split(tmp_path: Path, refused: Refused) -> None:
    for number in (1, 2):
        tiny_models.llama_gguf(tmp_path / f"m-{number:05d}-of-00002.gguf", split__count=5)
    assert refused(tmp_path / "m-00001-of-00002.gguf", both=False).key == "weights.shards_differ"


def test_a_shard_of_a_folder_that_its_index_names_but_that_is_not_there(tmp_path: Path, refused: Refused) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    tiny_models.write_json(root / "model.safetensors.index.json", index)
    (root / "model.safetensors").rename(root / "model-00001-of-00002.safetensors")
    error = refused(root)
    assert (error.key, "model-00002-of-00002.safetensors" in error.message) == ("weights.shard_missing", True)


def test_several_models_in_one_folder(tmp_path: Path, refused: Refused) -> None:
    for name in ("a.gguf", "b.gguf"):
        tiny_models.llama_gguf(tmp_path / name)
    error = refused(tmp_path / "")
    assert (error.key, "a.gguf, b.gguf" in error.message) == ("weights.several", True)


# --- newer than the engine -----------------------------------------------------------------------------


def model(**words: str) -> bytes:
    fields = [field(key.replace("__", "."), 8, string(value)) for key, value in words.items()]
    return raw_gguf(*fields, tensors=(raw_tensor("t", (4,)),), data=bytes(16))


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"general__architecture": "future9"}, "weights.architecture"),
        ({"general__architecture": "llama", "tokenizer__ggml__model": "future"}, "weights.tokenizer_model"),
        (
            {"general__architecture": "llama", "tokenizer__ggml__model": "gpt2", "tokenizer__ggml__pre": "future"},
            "weights.pre_tokenizer",
        ),
    ],
)
def test_a_complete_file_that_the_engine_is_too_old_for(
    tmp_path: Path, take: Resolve, words: dict[str, str], key: str
) -> None:
    (tmp_path / "m.gguf").write_bytes(model(**words))
    with pytest.raises(BadInputError) as caught:
        take(tmp_path / "m.gguf")
    assert (caught.value.key, caught.value.exit_code) == (key, ExitCode.BAD_INPUT)
    assert "future" in caught.value.message
    assert "newer" in caught.value.hint


def test_a_tensor_type_of_a_newer_engine_is_not_called_damage(tmp_path: Path, refused: Refused) -> None:
    name = field("general.architecture", 8, string("llama"))
    (tmp_path / "m.gguf").write_bytes(raw_gguf(name, tensors=(raw_tensor("t", (4,), kind=99),), data=bytes(16)))
    assert refused(tmp_path / "m.gguf").key == "weights.newer_type"
    (tmp_path / "m.gguf").write_bytes(raw_gguf(name, tensors=(raw_tensor("t", (4,), kind=1 << 20),), data=bytes(16)))
    assert refused(tmp_path / "m.gguf").key == "weights.damaged"


# --- what could run ------------------------------------------------------------------------------------


class Evil:
    """A pickle of it would make a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "m.pt", "m.ckpt", "m.pth"])
@pytest.mark.parametrize("archived", [False, True])
def test_pickles_are_refused_unread(tmp_path: Path, refused: Refused, name: str, archived: bool) -> None:
    raw, path = pickle.dumps(Evil(tmp_path / "it-ran")), tmp_path / name
    if archived:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", raw)
    else:
        path.write_bytes(raw)
    error = refused(path)
    assert error.key == "weights.pickle"
    assert "safetensors" in error.hint
    assert refused(tmp_path / "").key == "weights.pickle_only"
    assert not (tmp_path / "it-ran").exists()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "model.gguf"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.gguf", bytes(64 << 20))
    assert refused(path).key == "weights.not_gguf"
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "store"] == ["model.gguf"]


HOSTILE = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ x['__cl' ~ 'ass__'] }}",
    "{{ x[('__class' + '__')] }}",
    "{{ x|attr('f' ~ y) }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ lipsum.anything }}",
    "{% for i in range(10 ** 9) %}{% endfor %}",
    "{% for i in range(999999999) %}{% endfor %}",
    "{{ '{0.__class__}'.format(x) }}",
    "{% if __import__('os').system('id') ",
    "x" * (LONGEST + 1),
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_chat_template(tmp_path: Path, take: Resolve, source: str) -> None:
    assert is_hostile(examine("default", "here", source))
    path = tiny_models.llama_gguf(tmp_path / "m.gguf", tokenizer__chat_template=source)
    with pytest.raises(BadInputError) as caught:
        take(path)
    assert (caught.value.key, caught.value.exit_code) == ("weights.template", ExitCode.BAD_INPUT)
    assert "inspect" in caught.value.hint


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m.content }}{% endfor %}",
        "{% generation %}{{ messages[0].content | trim }}{% endgeneration %}{% break %}",
        "{% set ns = namespace(found=false) %}{{ raise_exception('no import of os, no eval') }}",
        "{{ 9 ** 9 ** 9 ** 9 }}{{ 'a' * 999999999999 }}",  # senseless, but nobody computes it
    ],
)
def test_honest_templates_are_not_suspected(source: str) -> None:
    assert examine("default", "here", source).findings == ()


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ("hello \u202e", "template.hidden"),
        ("see http://evil.example/x", "template.address"),
        ("{% if", "template.syntax"),
        ("{{ ['__cla', 'ss__'] | join }}", "template.underscores"),
        ("{{" + "(" * 3000 + "1" + ")" * 3000 + "}}", "template.syntax"),
        ("{{ " + "9" * 5000 + " }}", "template.syntax"),
    ],
)
def test_suspicious_templates_are_reported_for_people_to_judge(source: str, key: str) -> None:
    found = examine("default", "here", source)
    assert key in {finding.key for finding in found.findings}
    assert not is_hostile(found)


def test_a_hostile_template_of_a_folder(tmp_path: Path, take: Resolve) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    tiny_models.write_json(root / "tokenizer_config.json", {"chat_template": [{"name": "t", "template": HOSTILE[0]}]})
    with pytest.raises(BadInputError) as caught:
        take(root)
    assert caught.value.key == "weights.template"


# --- leading out of the folder -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "1_Pooling"])
def test_a_link_out_of_the_folder(tmp_path: Path, refused: Refused, name: str) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    shutil.move(root / name, tmp_path / "elsewhere")
    (root / name).symlink_to(tmp_path / "elsewhere")
    error = refused(root)
    assert (error.key, "elsewhere" in error.message) == ("weights.link_outside", True)


def test_a_link_to_nothing(tmp_path: Path, refused: Refused) -> None:
    root = tiny_models.bert_folder(tmp_path / "models--o--n" / "snapshots" / "abc")
    (root / "vocab.txt").symlink_to("../../blobs/gone")
    assert refused(root).key == "weights.link_broken"


def test_an_index_that_points_outside(tmp_path: Path, refused: Refused) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    for name in ("../secret.safetensors", "/etc/passwd", "a/../../x"):
        tiny_models.write_json(root / "model.safetensors.index.json", {"weight_map": {"a": name}})
        error = refused(root)
        assert (error.key, name in error.message) == ("weights.config", True)


# --- lies of safetensors -------------------------------------------------------------------------------


def lie(length: int | None = None, offsets: tuple[int, int] = (0, 16), shape: tuple[int, ...] = (4,)) -> bytes:
    header = {
        "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        "b": {"dtype": "F32", "shape": list(shape), "data_offsets": list(offsets)},
    }
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + bytes(32)


@pytest.mark.parametrize(
    "data",
    [
        lie(offsets=(8, 24)),  # over the first
        lie(offsets=(16, 64)),  # past the end
        lie(offsets=(16, 32), shape=(9,)),  # of another size than its shape
        lie(offsets=(32, 16)),
        lie(length=1 << 62),
        lie(length=100 << 20) + bytes(100),
        b"",
        b"\x08\x00",
    ],
    ids=["overlap", "past-the-end", "size", "backwards", "endless", "100-MB", "empty", "eight-bytes"],
)
def test_safetensors_headers_that_lie(tmp_path: Path, refused: Refused, data: bytes) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    (root / "model.safetensors").write_bytes(data)
    assert refused(root).key == "weights.safetensors"


def test_a_header_of_100_mb_that_is_there_is_not_read(tmp_path: Path, refused: Refused) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    with (root / "model.safetensors").open("wb") as stream:
        stream.write(struct.pack("<Q", 100 << 20))
        stream.truncate(200 << 20)  # sparse
    assert refused(root, both=False).key == "weights.safetensors"


@pytest.mark.parametrize("key", ["hidden_act", "architectures", "is_decoder", "position_embedding_type"])
@pytest.mark.parametrize("value", [{}, [], [[]], {"a": []}], ids=str)
def test_a_configuration_with_values_of_another_kind(tmp_path: Path, take: Resolve, key: str, value: object) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    config = json.loads((root / "config.json").read_text())
    tiny_models.write_json(root / "config.json", {**config, "model_type": [], key: value})
    with pytest.raises(BadInputError):
        take(root)


# --- graphs --------------------------------------------------------------------------------------------


def copied(name: str, tmp_path: Path) -> Path:
    source = GRAPHS / name
    target = tmp_path / source.name
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    if name == "tiny_ext.onnx":
        shutil.copy(GRAPHS / "tiny_ext.onnx_data", tmp_path)
    return target


def test_external_data_of_onnx(tmp_path: Path, refused: Refused) -> None:
    path = copied("tiny_ext.onnx", tmp_path)
    data = tmp_path / "tiny_ext.onnx_data"
    data.write_bytes(data.read_bytes()[:-1])
    assert refused(path, both=False).key == "weights.truncated"
    data.unlink()
    assert refused(path, both=False).key == "weights.shard_missing"
    path.write_bytes(path.read_bytes().replace(b"tiny_ext.onnx_data", b"../../etc/passwd.."))
    assert refused(path, both=False).key == "weights.config"


def test_a_sound_graph_is_not_loadable(tmp_path: Path, take: Resolve) -> None:
    for name in ("tiny.onnx", "paddle2", "paddle3"):
        with pytest.raises(BadInputError) as caught:
            take(copied(name, tmp_path))
        assert (caught.value.key, caught.value.exit_code) == ("weights.format", ExitCode.BAD_INPUT)


@pytest.mark.parametrize("folder", ["paddle2", "paddle3"])
def test_paddle_parameters_that_are_cut_missing_or_of_another_model(
    tmp_path: Path, refused: Refused, folder: str
) -> None:
    root = copied(folder, tmp_path)
    params = root / "inference.pdiparams"
    whole = params.read_bytes()
    for kept in (3, 25, 100, len(whole) - 1):
        params.write_bytes(whole[:kept])
        assert refused(root, both=False).key == "weights.truncated", kept
    params.write_bytes(whole + whole)
    assert refused(root, both=False).key == "weights.paddle_pair"
    params.unlink()
    assert refused(root, both=False).key == "weights.shard_missing"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["tiny.onnx", "tiny_ext.onnx", "paddle2/inference.pdmodel", "paddle2/inference.pdiparams"]),
    changes=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.one_of(st.none(), st.integers(1, 700)),
)
def test_damaged_graphs_end_in_our_own_error(
    tmp_path: Path, name: str, changes: list[tuple[int, int]], cut: int | None
) -> None:
    source = GRAPHS / name
    data = bytearray(source.read_bytes())
    for place, byte in changes:
        data[place % len(data)] = byte
    path = tmp_path / source.name
    path.write_bytes(bytes(data[:cut]))
    try:
        if path.suffix == ".onnx":
            read_onnx(path)
        elif path.suffix == ".pdmodel":
            read_paddle(path, GRAPHS / "paddle2" / "inference.pdiparams")
        else:
            read_paddle(GRAPHS / "paddle2" / "inference.pdmodel", path)
    except BadInputError as error:
        assert error.message


def test_numbers_of_a_sound_graph_are_read_back(tmp_path: Path) -> None:
    assert read_onnx(GRAPHS / "tiny.onnx").elements == {"FLOAT": int(np.prod((12, 8))), "FLOAT16": 8}
