"""What the converter may see of a folder, how it is started, and what its failures are called."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import tiny_models

from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, BuildError
from sampan.spec.ports import Completed
from sampan.spec.weights import GoldenPair, WeightsInfo
from sampan.weights.converter.outside import origin_of
from sampan.weights.converter.run import Converter, golden_set
from sampan.weights.converter.staging import staged
from sampan.weights.describe import Origin, describe
from sampan.weights.gguf_header import read_header
from sampan.weights.reference.tokenizer import NoReferenceError

CLASSES = Path(__file__).parents[2] / "data/weights/classes"


@dataclass
class Python:
    """A runner: does ``act``, remembers how it was called."""

    act: Callable[[Sequence[str]], object] = lambda _: None
    output: str = ""
    code: int = 0
    argv: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, **_: Any) -> Completed:
        self.argv, self.env = argv, env or {}
        self.act(argv)
        return Completed(tuple(argv), self.code, self.output)


def _converter(python: Python) -> Converter:
    return Converter(Path("/env/python"), Path("/source"), Path("/answers.py"), python)


def _info(name: str) -> WeightsInfo:
    header = read_header(CLASSES / f"{name}.gguf")
    return describe(header, str(header.fields["general.architecture"]), Origin(name, name, "huggingface", "0"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tiny_models.bert_folder(tmp_path / "model", architectures=["Qwen3ForCausalLM"], torch_dtype="bfloat16")
    (root / "modeling_evil.py").write_text("raise SystemExit", "utf-8")
    (root / "pytorch_model.bin").write_bytes(b"\x80\x02.")
    (root / "merges.txt").write_text("a b\n", "utf-8")
    return root


def test_only_descriptions_and_safetensors_are_shown_to_the_converter(folder: Path, tmp_path: Path) -> None:
    shown = staged(folder).link(tmp_path / "links")
    names = {str(path.relative_to(shown)) for path in shown.rglob("*") if path.is_file()}
    assert {"config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json", "merges.txt"} <= names
    assert not [name for name in names if name.endswith((".py", ".bin", ".md"))]


def test_the_published_type_is_read(folder: Path) -> None:
    assert staged(folder).own_type == "bf16"


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_a_folder_that_wants_its_own_code_run_is_refused(folder: Path, name: str) -> None:
    data = json.loads((folder / "config.json").read_text()) | {"auto_map": {"AutoModel": "modeling_evil.Evil"}}
    tiny_models.write_json(folder / name, data)
    with pytest.raises(BadInputError) as caught:
        staged(folder)
    assert caught.value.key == "import.own_code"


@pytest.mark.parametrize("names", [[], [5], None, ["NeverHeardOfModel"]])
def test_a_class_that_the_converter_lacks_costs_no_download(folder: Path, names: object) -> None:
    data = json.loads((folder / "config.json").read_text()) | {"architectures": names}
    tiny_models.write_json(folder / "config.json", data)
    with pytest.raises(BadInputError) as caught:
        staged(folder)
    assert caught.value.key == "import.class"


@pytest.mark.parametrize(
    ("spoil", "key"),
    [
        (lambda root: (root / "config.json").unlink(), "weights.no_config"),
        (lambda root: (root / "model.safetensors").unlink(), "weights.pickle_only"),
        (lambda root: (root / "model.safetensors").write_bytes(b"\xff" * 64), "weights.safetensors"),
        (lambda root: (root / "config.json").write_text("[1]"), "weights.config"),
    ],
)
def test_damage_is_found_before_anything_is_fetched(folder: Path, spoil: Callable[[Path], object], key: str) -> None:
    spoil(folder)
    with pytest.raises(BadInputError) as caught:
        staged(folder)
    assert caught.value.key == key


def test_the_converter_has_neither_network_nor_foreign_settings(tmp_path: Path) -> None:
    def write(argv: Sequence[str]) -> None:
        Path(argv[argv.index("--outfile") + 1]).write_bytes((CLASSES / "llama.gguf").read_bytes())

    python = Python(write)
    _converter(python).convert(tmp_path, "f16", "m", tmp_path / "o.gguf", SilentProgress())
    assert (python.env["HF_HUB_OFFLINE"], python.env["TRANSFORMERS_OFFLINE"], python.env["PYTHONPATH"]) == (
        "1",
        "1",
        "",
    )
    assert list(python.argv[3:5]) == ["--outtype", "f16"]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("INFO\nERROR:hf-to-gguf:Model FooForCausalLM is not supported\n", "FooForCausalLM is not supported"),
        ("Traceback\nKeyError: 'x'\n", "KeyError"),
        ("", "exit 1"),
    ],
)
def test_the_converters_reason_is_told(tmp_path: Path, output: str, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        _converter(Python(output=output, code=1)).convert(tmp_path, "f32", "m", tmp_path / "o.gguf", SilentProgress())
    assert caught.value.key == "import.converter"
    assert words in caught.value.message


def test_an_unknown_vocabulary_is_told_apart_and_can_be_named(tmp_path: Path) -> None:
    python = Python(output="NotImplementedError: BPE pre-tokenizer was not recognized - x\nbye\n", code=1)
    with pytest.raises(BadInputError) as caught:
        _converter(python).convert(tmp_path, "f32", "m", tmp_path / "o.gguf", SilentProgress())
    assert caught.value.key == "import.pre_tokenizer"
    named = Python(lambda argv: Path(argv[argv.index("--outfile") + 1]).symlink_to(CLASSES / "llama.gguf"))
    tool = replace(_converter(named), named=Path("/named.py"), pre="qwen2")
    tool.convert(tmp_path, "f32", "m", tmp_path / "o.gguf", SilentProgress())
    assert named.argv[1:5] == ["/named.py", "/source", "qwen2", str(tmp_path)]


def test_a_converted_file_that_is_cut_is_not_taken(tmp_path: Path) -> None:
    def cut(argv: Sequence[str]) -> None:
        Path(argv[argv.index("--outfile") + 1]).write_bytes((CLASSES / "llama.gguf").read_bytes()[:-5000])

    with pytest.raises(BadInputError):
        _converter(Python(cut)).convert(tmp_path, "f32", "m", tmp_path / "o.gguf", SilentProgress())


def test_vectors_become_a_golden_set_with_the_types_tolerance() -> None:
    golden = golden_set(_info("qwen3-embedding"), [{"text": "a", "vector": [1.0, 0.0]}])
    assert golden.embeddings[0].vector == (1.0, 0.0)
    assert golden.minimum_cosine > 0.999


def test_only_clear_choices_of_a_chat_are_kept() -> None:
    clear = {"prompt": "p", "texts": ["", "12345", "1234567890", "12345678901"], "margins": [3.0, 2.0, 0.1]}
    vague = {"prompt": "q", "texts": ["", "a", "ab"], "margins": [0.1, 9.0]}
    golden = golden_set(_info("llama"), [clear, vague])
    assert [chat.prompt for chat in golden.chats] == ["p"]
    assert golden.minimum_prefix == 10
    with pytest.raises(NoReferenceError):
        golden_set(_info("llama"), [vague])


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["Qwen3ForCausalLM"]},  # its score is made of two tokens' logits
        {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b"}},
    ],
)
def test_a_reranker_without_one_score_of_its_own_has_no_reference(tmp_path: Path, config: dict[str, object]) -> None:
    tiny_models.write_json(tmp_path / "config.json", config)
    with pytest.raises(NoReferenceError):
        _converter(Python()).golden(tmp_path, _info("xlm-roberta-reranker"), tmp_path, SilentProgress())


def test_a_classifiers_scores_become_pairs(tmp_path: Path) -> None:
    config = {"architectures": ["XLMRobertaForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
    tiny_models.write_json(tmp_path / "config.json", config)
    pairs = [{"query": "q", "document": "d", "score": -1.5}]
    python = Python(lambda argv: Path(argv[3]).write_text(json.dumps(pairs), "utf-8"))
    golden = _converter(python).golden(tmp_path, _info("xlm-roberta-reranker"), tmp_path, SilentProgress())
    assert golden.pairs == (GoldenPair("q", "d", -1.5),)
    assert not golden.embeddings


def test_a_reference_that_died_is_said(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        _converter(Python(output="MemoryError\n", code=1)).golden(
            tmp_path, _info("llama"), tmp_path, SilentProgress()
        )
    assert caught.value.key == "import.answers"
    assert "MemoryError" in caught.value.message


def test_pooling_normalization_and_prefixes_are_the_folders(folder: Path) -> None:
    prompts = {"prompts": {"query": "Q: ", "document": "D: "}}
    tiny_models.write_json(folder / "config_sentence_transformers.json", prompts)
    origin = origin_of(folder, "0")
    assert (origin.kind, origin.normalize, origin.longest_text) == ("sentence-transformers", True, 24)
    assert (origin.query_prefix, origin.passage_prefix) == ("Q: ", "D: ")
