"""Native shards become the file that they were cut from.

tests/data/weights/shards: tiny_models.llama_gguf, cut by the pinned engine's own
`llama-gguf-split --split --split-max-tensors 8`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.fakes import tiny_models
from tests.unit.weights.conftest import Resolve

from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import BadInputError
from sampan.weights.gguf_header import read_header
from sampan.weights.merge import merged

SHARDS = Path(__file__).parents[2] / "data/weights/shards"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(SHARDS, tmp_path / "a model, 分片")


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.gguf"))


def test_the_bytes_are_those_before_the_split(folder: Path, tmp_path: Path, store: DiskStore) -> None:
    whole = tiny_models.llama_gguf(tmp_path / "whole.gguf")
    made = merged(_shards(folder), store, SilentProgress())
    assert made.name == "tiny.gguf"
    assert made.read_bytes() == whole.read_bytes()


def test_any_shard_and_their_folder_mean_the_whole_model(folder: Path, tmp_path: Path, take: Resolve) -> None:
    whole = take(tiny_models.llama_gguf(tmp_path / "whole.gguf"))
    for source in (folder, *_shards(folder)):
        info = take(source)
        assert (info.name, info.file_name, info.sha256) == ("tiny", "tiny.gguf", whole.sha256)
        assert (info.source, info.golden_note) == (str(source), whole.golden_note)


@pytest.mark.parametrize("spoil", ["order", "twice", "another", "renamed", "cut"])
def test_shards_that_do_not_belong_together_are_refused(folder: Path, take: Resolve, spoil: str) -> None:
    first, second, third = _shards(folder)
    if spoil == "order":
        second.rename(folder / "x")
        third.rename(second)
        (folder / "x").rename(third)
    elif spoil == "twice":
        shutil.copyfile(second, third)
    elif spoil == "another":
        tiny_models.llama_gguf(third)
    elif spoil == "renamed":
        third.unlink()
        for number, shard in enumerate((first, second), 1):
            shard.rename(folder / f"tiny-{number:05d}-of-00002.gguf")
    else:
        third.write_bytes(third.read_bytes()[:-4000])
    with pytest.raises(BadInputError) as caught:
        take(folder)
    assert caught.value.key == ("weights.truncated" if spoil == "cut" else "weights.shards_differ")


def test_a_tensor_in_two_shards_is_damage(tmp_path: Path, store: DiskStore) -> None:
    for number in (1, 2):
        tiny_models.llama_gguf(tmp_path / f"m-{number:05d}-of-00002.gguf", split__count=2, split__no=number - 1)
    with pytest.raises(BadInputError) as caught:
        merged(_shards(tmp_path), store, SilentProgress())
    assert caught.value.key == "weights.damaged"


def test_the_first_shard_still_says_that_it_is_one(folder: Path) -> None:
    header = read_header(_shards(folder)[0])
    assert (header.fields["split.count"], header.fields["split.no"]) == (3, 0)
