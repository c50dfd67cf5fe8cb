"""bundle inspect, diff, delta; receipt and apply as a user types them."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.bundle_parts import PASSED, make_parts, put

from sampan.bundle.assemble import assemble
from sampan.bundle.seal import seal
from sampan.bundle.verify import verify
from sampan.cli import entry, main, output
from sampan.trust import keyring


@pytest.fixture(autouse=True)
def no_json_afterwards() -> Iterator[None]:
    yield
    output.use_json(False)


def sampan(*words: str | Path) -> int:
    try:
        return entry.run(main.build_app(), [str(word) for word in words])
    except SystemExit as ended:
        return int(ended.code or 0)


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What is installed, and what shall be."""
    made, place = [], tmp_path_factory.mktemp("releases")
    for which in ("old", "new"):
        folder = Path(assemble(make_parts(place / which), place / which).path)
        put(folder / "app/pkg/same.so", b"same" * 100_000)
        put(folder / "app/pkg/which.txt", which.encode())
        seal(folder, PASSED)
        made.append(folder)
    return made[0], made[1]


@pytest.fixture
def installed(releases: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SAMPAN_BUNDLE", str(releases[0]))
    monkeypatch.setattr(keyring, "SYSTEM", tmp_path / "trusted")
    return releases[0]


def _receipt(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert sampan("receipt") == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("way", ["text", "file", "stdin", "utf-16", "bundle"])
def test_from_a_receipt_to_the_whole_bundle(
    way: str, installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _receipt(capsys)
    file = put(tmp_path / "receipt.txt", text.encode("utf-16" if way == "utf-16" else "utf-8"))
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    since = {"text": text, "stdin": "-", "bundle": str(installed)}.get(way, str(file))
    new = installed.parents[1] / "new"
    assert sampan("bundle", "delta", new / "mini-3", "--since", since, "--out", tmp_path / "carry", "--json") == 0
    made = said(capsys)
    assert made["left_out"] != 0
    assert sampan("apply", str(made["path"]), "--out", tmp_path / "here", "--json") == 0
    assert verify(Path(str(said(capsys)["path"]))) == ()


def test_damaged_files_are_named_and_travel_again(
    releases: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Path(shutil.copytree(releases[0], tmp_path / "broken"))
    put(broken / "app/pkg/same.so", b"rot!" * 100_000)
    monkeypatch.setenv("SAMPAN_BUNDLE", str(broken))
    assert sampan("receipt") == 0
    found = capsys.readouterr()
    assert "app/pkg/same.so" in found.err
    assert sampan("bundle", "delta", releases[1], "--since", found.out, "--out", tmp_path, "--json") == 0
    monkeypatch.setattr(keyring, "SYSTEM", tmp_path / "trusted")
    assert sampan("apply", str(said(capsys)["path"]), "--out", tmp_path / "here") == 0


def test_where_a_key_is_trusted_only_its_deltas_are_taken(
    installed: Path, releases: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, key = Path(shutil.copytree(releases[1], tmp_path / "mini-3")), tmp_path / "key"
    assert sampan("key", "new", key) == 0
    plain, signed = tmp_path / "plain", tmp_path / "signed"
    assert sampan("bundle", "delta", new, "--since", installed, "--out", plain) == 0
    assert sampan("sign", new, "--key", key) == 0
    assert sampan("bundle", "delta", new, "--since", installed, "--out", signed) == 0
    name, public = "mini-3.since-mini-3.tar", f"{key}.pub"
    capsys.readouterr()
    assert sampan("apply", plain / name, "--key", public, "--json") == 9
    assert said(capsys)["key"] == "delta.untrusted"
    assert not (plain / "mini-3").exists()
    assert sampan("apply", signed / name, "--key", public) == 0
    assert sampan("verify", signed / "mini-3", "--key", public) == 0
    assert sampan("apply", plain / name, "--key", public, "--unsigned") == 0
    capsys.readouterr()
    for verb in ("verify", "sign"):  # most of it is elsewhere: that is no damage, and nothing to sign
        assert sampan(verb, signed / name, "--key", public if verb == "verify" else key, "--json") == 3
        assert said(capsys)["key"] == "delta.alone"


@pytest.mark.parametrize("since", ["no-such-file", "@01 damaged #0000"])
def test_what_is_neither_receipt_nor_bundle_is_refused(
    since: str, releases: tuple[Path, Path], tmp_path: Path
) -> None:
    assert sampan("bundle", "delta", releases[1], "--since", since, "--out", tmp_path / "carry") == 3
    assert not (tmp_path / "carry").exists()


def test_a_full_bundle_is_not_applied(installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sampan("apply", put(tmp_path / "x.tar", b"?"), "--json") == 3
    assert said(capsys)["key"] == "delta.not-one"
    assert sampan("apply", tmp_path / "absent.tar", "--json") == 3
    assert said(capsys)["key"] == "file.missing"


def test_outside_of_a_bundle_there_is_no_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAMPAN_BUNDLE", raising=False)
    assert sampan("receipt") == 2


def test_inspect_and_diff_speak_to_people_and_machines(
    releases: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sampan("bundle", "inspect", releases[0]) == 0
    assert "Q8_0" in capsys.readouterr().out
    assert sampan("bundle", "diff", *releases) == 0
    assert "* app/pkg/which.txt" in capsys.readouterr().out
    assert sampan("bundle", "diff", *releases, "--json") == 0
    assert said(capsys)["schema"] == "sampan/bundle-diff/1"


def test_a_bare_work_folder_is_still_assembled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sampan("bundle", tmp_path, "--json") == 3
    assert said(capsys)["key"] == "work.none"
