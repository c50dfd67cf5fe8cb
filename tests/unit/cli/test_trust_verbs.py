"""key, sign, verify and trust as a user types them; in this process, since each start costs half a second."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fakes.bundle_parts import make_parts
from tests.fakes.typed import typed

from sampan.bundle.assemble import assemble
from sampan.bundle.pack import pack
from sampan.bundle.seal import seal
from sampan.spec.artefacts import Rehearsal


@pytest.fixture
def tar(tmp_path: Path) -> Path:
    folder = Path(assemble(make_parts(tmp_path), tmp_path / "out").path)
    seal(folder, Rehearsal("passed", None, "cortex-a76", 65536, emulated=True))
    return Path(pack(folder, tmp_path / "carry").path)


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_from_a_fresh_key_to_a_trusted_bundle(tar: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, store = tmp_path / "keys" / "site", tmp_path / "trusted"
    assert typed("key", "new", key, "--json") == 0
    fingerprint = str(said(capsys)["fingerprint"])
    assert (key.stat().st_mode & 0o777, key.with_name("site.pub").stat().st_mode & 0o777) == (0o600, 0o644)
    assert typed("verify", tar, "--trusted", store) == 0
    assert typed("verify", tar, "--trusted", store, "--signed") == 9
    assert typed("sign", tar, "--key", key) == 0
    assert typed("verify", tar, "--key", f"{key}.pub") == 0
    assert typed("trust", "add", f"{key}.pub", "--trusted", store) == 9
    assert typed("trust", "add", f"{key}.pub", "--trusted", store, "--fingerprint", "SHA256:" + "0" * 64) == 9
    assert typed("trust", "add", f"{key}.pub", "--trusted", store, "--fingerprint", fingerprint) == 0
    capsys.readouterr()
    assert typed("verify", tar, "--trusted", store, "--json") == 0
    assert said(capsys)["verdict"] == {"status": "trusted", "signers": [fingerprint[7:]], "strangers": []}
    assert typed("trust", "remove", fingerprint, "--trusted", store) == 0
    assert typed("verify", tar, "--trusted", store, "--signed") == 9


def test_a_new_key_follows_the_old_one_without_a_telephone(
    tar: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, store = tmp_path / "old", tmp_path / "new", tmp_path / "trusted"
    password = tmp_path / "password"
    password.write_text("秘密\n", encoding="utf-8")
    assert typed("key", "new", old, "--json") == 0
    fingerprint = str(said(capsys)["fingerprint"])
    assert typed("key", "new", new, "--password-file", password) == 0
    assert typed("trust", "add", f"{old}.pub", "--trusted", store, "--fingerprint", fingerprint) == 0
    assert typed("key", "endorse", f"{new}.pub", "--key", old, "--note", "2027") == 0
    assert typed("trust", "add", f"{new}.pub", "--trusted", store) == 0
    assert typed("sign", tar, "--key", new) == 3  # its password is wanted
    assert typed("sign", tar, "--key", new, "--password-file", password) == 0
    assert typed("verify", tar, "--trusted", store) == 0


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    assert typed("key", "new", tmp_path / "site") == 0
    before = (tmp_path / "site").read_bytes()
    assert typed("key", "new", tmp_path / "site") == 3
    assert (tmp_path / "site").read_bytes() == before


def test_a_damaged_bundle_is_named_in_both_languages(
    tar: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tar.read_bytes()
    position = data.index(b"GGUF") + 50
    tar.write_bytes(data[:position] + b"\xff" + data[position + 1 :])
    assert typed("verify", tar, "--trusted", tmp_path / "none") == 9
    assert "weights/mini.gguf" in capsys.readouterr().out
    key = tmp_path / "site"
    assert typed("key", "new", key) == 0
    assert typed("sign", tar, "--key", key) == 9


def test_a_password_file_without_a_key_to_sign_with_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("pack", tmp_path, "--password-file", tmp_path / "none", "--json") == 2
    assert said(capsys)["key"] == "trust.password-alone"


def test_a_key_that_was_named_is_not_to_be_trusted_but_the_signers_to_be_had(
    tar: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("site", "other"):
        assert typed("key", "new", tmp_path / name) == 0
    assert typed("sign", tar, "--key", tmp_path / "site") == 0
    capsys.readouterr()
    assert typed("verify", tar, "--key", tmp_path / "other.pub") == 9
    shown = capsys.readouterr().out
    assert "not by the key that you named" in shown
    assert "trust add" not in shown


def test_trust_list_is_trust_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "trusted"
    assert typed("trust", "show", "--trusted", store) == 0
    shown = capsys.readouterr().out
    assert typed("trust", "list", "--trusted", store) == 0
    assert capsys.readouterr().out == shown


def test_a_place_for_a_key_that_cannot_be_is_no_fault_of_the_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert typed("key", "new", tmp_path / "file/site") == 8
    shown = capsys.readouterr().err
    assert "is no folder" in shown
    assert "dmesg" not in shown
