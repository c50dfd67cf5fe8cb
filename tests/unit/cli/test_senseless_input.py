"""Numbers, names and files that make no sense are refused before any work, with the bound or the field named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampan.cli import entry, options, output
from sampan.cli.main import build_app
from sampan.errors import BadInputError, UsageError
from sampan.spec import codec
from sampan.survey import known
from sampan.survey.resolve import load_file, name_of_host, resolve


@pytest.fixture(autouse=True)
def _text_again() -> Iterator[None]:
    yield
    output.use_json(False)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--concurrency", "100000"), "256"),
        (("--concurrency", "0"), "256"),
        (("--cores", "4097"), "4096"),
        (("--release", str(2**31)), str(2**31 - 1)),
        (("--release", "-1"), "from 1"),
        (("--name", ""), "--name"),
        (("-w", ""), "--weights"),
        (("-t", " "), "--target"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "ship"])
def test_senseless_words_end_with_2_before_any_work(
    verb: str, words: tuple[str, str], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (verb, "-w", str(tmp_path / "none.gguf"), "-t", "hygon", "--json", *words)
    assert entry.run(build_app(), given) == 2
    said = json.loads(capsys.readouterr().out)
    assert said["exit_code"] == 2
    assert part in said["message"]
    assert said["hint"]


@pytest.mark.parametrize("memory", ["1M", "65T", "", "9" * 400])
def test_a_senseless_memory_is_refused(memory: str) -> None:
    with pytest.raises(UsageError):
        options.limits(memory, None, None, None, 8080)


@pytest.mark.parametrize(("memory", "count"), [("16M", 1 << 24), ("64T", 1 << 46), (None, None)])
def test_the_bounds_themselves_are_allowed(memory: str | None, count: int | None) -> None:
    assert options.limits(memory, 4096, 256, None, 8080)["memory_bytes"] == count


@pytest.mark.parametrize(
    ("field", "value"),
    [("page_size", 0), ("page_size", 5000), ("page_size", 1 << 17), ("name", ""), ("name", "../x"), ("name", "A b")],
)
def test_a_profile_file_with_a_senseless_field_names_it(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({**codec.to_data(known.load("kylin-v10-phytium-d2000")), field: value}))
    with pytest.raises(BadInputError, match=field) as caught:
        resolve(str(path))
    assert str(path) in caught.value.message


@pytest.mark.parametrize("name", known.names())
def test_every_known_profile_can_be_read_from_a_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(codec.to_json(known.load(name)), encoding="utf-8")
    assert load_file(path) == known.load(name)


def test_what_is_no_profile_at_all_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "elf.json").write_bytes(b"\x7fELF\xff\xfe")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for name, key in (("folder", "artefact.folder"), ("elf", "artefact.binary"), ("deep", "artefact.json")):
        with pytest.raises(BadInputError) as caught:
            resolve(str(tmp_path / f"{name}.json"))
        assert caught.value.key == key
        assert "codec" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "name"), [("Node-1.example", "node-1.example"), ("fe80::1", "fe80-1"), ("::1", "1"), ("::", "host")]
)
def test_a_surveyed_hosts_name_can_be_read_again(host: str, name: str) -> None:
    assert name_of_host(host) == name
