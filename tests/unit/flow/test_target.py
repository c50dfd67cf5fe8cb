"""The bundle's own commands: which server they ask, and what a damaged bundle is told."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.models import MINILM
from tests.unit.install.conftest import make_bundle, make_plan

from sampan.errors import BadInputError, ExitCode
from sampan.flow import asking, doctoring, serving, target
from sampan.gateway import local_token
from sampan.gateway.comparison import SelfTest, TextResult
from sampan.install import foreground, lookup
from sampan.spec import codec


@pytest.fixture(autouse=True)
def _run_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def own_url(bundle: Path) -> str:
    """Where the bundle's own self-test asks."""
    found = asking.listening(lookup.find(bundle))
    return asking.url_of(found.host, found.port)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    """The pid of a process that looks like `sampan serve`."""
    script = tmp_path / "sampan"
    script.write_text("#!/bin/sh\nexec 3<&0\nread -r never <&3\n")
    process = subprocess.Popen(["/bin/sh", str(script), "serve"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.communicate()


def test_a_server_writes_down_where_it_listens_and_takes_it_away() -> None:
    with serving._pid_file("mini", "127.0.0.1", 8181) as folder:
        text = (folder / foreground.PID_FILE).read_text()
        assert text == f"{os.getpid()}\n127.0.0.1\n8181\n"
    assert not (folder / foreground.PID_FILE).exists()


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8181"), ("0.0.0.0", "http://127.0.0.1:8181"), ("::", "http://[::1]:8181")],
)
def test_selftest_and_doctor_ask_the_server_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: int, host: str, url: str
) -> None:
    bundle = make_bundle(tmp_path / "other-7", make_plan("other", 7))
    folder = target.run_folder("other")
    folder.mkdir(mode=0o700, parents=True)
    planned = own_url(bundle)
    (folder / foreground.PID_FILE).write_text(foreground.pid_text(foreground.Foreground(server, host, 8181)))
    assert (planned, own_url(bundle)) == (f"http://127.0.0.1:{make_plan().port}", url)
    monkeypatch.setenv("SAMPAN_BUNDLE", str(bundle))
    assert doctoring._service()[0].port == 8181


@pytest.mark.parametrize("missing", ["weights/weights.json", "weights/tiny.gguf", "engine/llama.cpp"])
def test_a_bundle_with_a_part_missing_starts_nothing_and_names_it(tmp_path: Path, missing: str) -> None:
    bundle = make_bundle(tmp_path / "mini-1", make_plan())
    program = bundle / "engine/llama.cpp/any/llama-server"
    program.parent.mkdir(parents=True)
    program.touch()
    (bundle / "weights/tiny.gguf").touch()
    (bundle / "weights/weights.json").write_text(codec.to_json(replace(MINILM, path="weights/tiny.gguf")))
    shutil.move(bundle / missing, tmp_path / "gone")
    said: list[str] = []
    with pytest.raises(BadInputError) as caught:
        serving.serve(bundle, host="127.0.0.1", port=1, say=said.append)
    assert (caught.value.key, caught.value.exit_code) == ("target.incomplete", ExitCode.BAD_INPUT)
    assert str(bundle / missing) in caught.value.message
    assert "sha256sum -c SHA256SUMS" in caught.value.hint
    assert said == []


def test_the_pid_file_of_a_successor_is_left_alone() -> None:
    with serving._pid_file("mini", "127.0.0.1", 8181) as folder:
        (folder / foreground.PID_FILE).write_text("1\n127.0.0.1\n8181\n")
    assert (folder / foreground.PID_FILE).read_text() == "1\n127.0.0.1\n8181\n"


def test_a_successor_that_comes_to_nothing_gives_the_pid_file_back() -> None:
    with serving._pid_file("mini", "127.0.0.1", 8181) as folder:
        pass
    (folder / foreground.PID_FILE).write_text("1\n127.0.0.1\n8181\n")
    with serving._pid_file("mini", "127.0.0.1", 8181):
        assert (folder / foreground.PID_FILE).read_text() != "1\n127.0.0.1\n8181\n"
    assert (folder / foreground.PID_FILE).read_text() == "1\n127.0.0.1\n8181\n"


def test_the_successor_of_an_installed_release_is_the_one_in_force_by_then(tmp_path: Path) -> None:
    old, new = tmp_path / "releases" / "1", tmp_path / "releases" / "2"
    for folder in (old, new):
        folder.mkdir(parents=True)
    assert serving._in_force(old) == old
    (tmp_path / "current").symlink_to("releases/2")
    assert serving._in_force(old).resolve() == new
    assert serving._in_force(tmp_path / "unpacked-3") == tmp_path / "unpacked-3"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (None, True),
        ("http://127.0.0.1:{port}/v1/", True),
        ("http://127.0.0.1:1", False),
        ("http://10.0.0.1:{port}", False),
        ("http://127.0.0.1:{port}@10.0.0.1", False),
    ],
)
def test_only_the_bundles_own_service_is_told_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, told: bool
) -> None:
    bundle = make_bundle(tmp_path / "other-7", make_plan("other", 7))
    port = make_plan().port
    sent: list[str | None] = []

    def ask(_url: str, _task: str, *, token: str | None, certificate: str | None) -> SelfTest:
        assert certificate is None
        sent.append(token)
        return SelfTest("m", "u", embeddings=(TextResult("t", 1, 1, ok=True),), basis="consistency")

    monkeypatch.setattr("sampan.gateway.selftest.consistency", ask)
    token = local_token.fresh()
    folder = target.run_folder("other")
    folder.mkdir(mode=0o700)
    with local_token.published(folder, port, token):
        asking.selftest(bundle, url.format(port=port) if url else None)
        asking._selftest_line(bundle, "127.0.0.1", port, None)
    assert sent == [token if told else None, token]


def test_the_token_is_found_wherever_the_service_keeps_its_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = local_token.fresh()
    monkeypatch.setattr(asking, "_UNITS_RUN", tmp_path / "units")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    own = f"sampan-later-{os.getuid()}"
    units = (tmp_path / "units/sampan-mini", tmp_path / "run/sampan-other")
    for folder in (*units, tmp_path / "units/user" / str(os.getuid()) / own, tmp_path / "temporary" / own):
        folder.mkdir(mode=0o700, parents=True)
        with local_token.published(folder, 8181, token):
            name = folder.name.removeprefix("sampan-").removesuffix(f"-{os.getuid()}")
            assert asking._local_token(name, 8181) == token
            assert asking._local_token("none", 8181) is None
