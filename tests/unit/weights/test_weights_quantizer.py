"""llama-quantize's ends, good and bad, each told apart; and files that have a classifier."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import tiny_models
from tests.unit.weights.conftest import Resolve

from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import BadInputError, BuildError, ExitCode, FilesystemError
from sampan.spec import codec
from sampan.spec.ports import Completed
from sampan.spec.weights import GoldenSet
from sampan.weights.describe import Origin, describe
from sampan.weights.gguf_header import read_header
from sampan.weights.quantized import describe_quantized, with_golden
from sampan.weights.quantizer import Quantizer

CLASSES = Path(__file__).parents[2] / "data/weights/classes"


@dataclass
class Tool:
    """A runner whose only program does ``act`` with the output's path."""

    act: Callable[[Path], object]
    output: str = ""
    code: int = 0
    argv: Sequence[str] = ()

    def run(self, argv: Sequence[str], *, on_line: Callable[[str], None] | None = None, **_: Any) -> Completed:
        self.argv = argv
        self.act(Path(argv[-3]))
        for line in self.output.splitlines():
            if on_line:
                on_line(line)
        return Completed(tuple(argv), self.code, self.output)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tiny_models.llama_gguf(tmp_path / "base.gguf")


def _write(tool: Tool, base: Path, *, requantize: bool = False) -> int:
    quantizer = Quantizer(Path("/tools/llama-quantize"), tool, 2)
    return quantizer.write(base, "Q8_0", base.parent / "out.gguf", SilentProgress(), requantize=requantize)


def test_the_tool_is_asked_and_its_fallbacks_are_counted(base: Path) -> None:
    words = "[ 1/ 20] x\nllama_model_quantize_impl: WARNING: 30 of 101 tensor(s) required fallback quantization\n"
    tool = Tool(lambda out: shutil.copyfile(base, out), words)
    assert _write(tool, base) == 30
    assert tuple(tool.argv[1:]) == (str(base), str(base.parent / "out.gguf"), "Q8_0", "2")
    _write(tool, base, requantize=True)
    assert tool.argv[1] == "--allow-requantize"


@pytest.mark.parametrize(
    ("act", "output", "code", "words"),
    [
        (lambda _: None, "main: failed to quantize model from 'x'\n", 1, "failed to quantize"),
        (lambda _: None, "", -9, "exit -9"),
        (lambda _: None, "done\n", 0, "done"),
    ],
)
def test_a_tool_that_fails_is_quoted(
    base: Path, act: Callable[[Path], object], output: str, code: int, words: str
) -> None:
    with pytest.raises(BuildError) as caught:
        _write(Tool(act, output, code), base)
    assert caught.value.key == "gate.quantize"
    assert words in caught.value.message
    assert caught.value.exit_code == ExitCode.BUILD_FAILED


def test_half_a_file_is_never_taken(base: Path) -> None:
    def half(out: Path) -> None:
        out.write_bytes(base.read_bytes()[:-4000])

    with pytest.raises(BadInputError):
        _write(Tool(half), base)


def test_a_full_disk_is_called_one(base: Path) -> None:
    with pytest.raises(FilesystemError) as caught:
        _write(Tool(lambda _: None, "write error: No space left on device\n", 1), base)
    assert caught.value.key == "disk.full"


def test_a_classifiers_head_without_a_pooling_type_is_a_reranker() -> None:
    """What llama.cpp's converter writes for bge-reranker; as an embedding model it would serve nonsense."""
    info = describe(read_header(CLASSES / "xlm-roberta-reranker.gguf"), "bert", Origin("r", "r", "gguf", "0"))
    assert (info.task, info.pooling) == ("rerank", "rank")
    plain = describe(read_header(CLASSES / "xlm-roberta.gguf"), "bert", Origin("e", "e", "gguf", "0"))
    assert (plain.task, plain.pooling) == ("embedding", "mean")


def test_a_quantized_encoder_answers_for_the_unquantized_one(tmp_path: Path, take: Resolve, store: DiskStore) -> None:
    root = tiny_models.bert_folder(tmp_path / "tiny")
    original, small = take(root, "f32"), take(root, "q8_0")
    made = describe_quantized(original, Path(small.path), store, SilentProgress())
    info = with_golden(original, made, 0.97, store)
    assert info.golden_path is not None
    assert original.golden_path is not None
    golden = codec.load(GoldenSet, Path(info.golden_path))
    assert golden.embeddings == codec.load(GoldenSet, Path(original.golden_path)).embeddings
    assert golden.minimum_cosine == 0.97
    assert (info.quantization, info.context_length, info.path) == ("Q8_0", original.context_length, small.path)


def test_a_quantized_chat_is_continued_by_its_own_numbers(tmp_path: Path, take: Resolve, store: DiskStore) -> None:
    original = take(tiny_models.llama_gguf(tmp_path / "tiny.gguf"))
    made = describe_quantized(original, Path(original.path), store, SilentProgress())
    info = with_golden(replace(original, golden_path=None, golden_note="weights.golden.size"), made, 0.9, store)
    assert info.golden_path is None
    assert info.golden_note is not None
