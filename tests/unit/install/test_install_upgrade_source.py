"""Upgrade from a tar, a folder and a delta: judged by the installed release, and nothing of it runs before."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.fakes.miniature import miniature, packed
from tests.unit.install.conftest import Target
from tests.unit.install.test_install_releases import back

from sampan.bundle import delta_pack
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, FilesystemError, IncompatibleError, VerificationError
from sampan.flow import asking, installing, signing_keys, trusting
from sampan.flow.opening import Wish
from sampan.install import lookup
from sampan.install.model import Installed
from sampan.install.steps import install
from sampan.trust import keyring
from sampan.trust.keys import PublicKey

QUIET = SilentProgress()


@pytest.fixture
def one(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Release 1 is installed, and the flow's hands are those of the pretended machine."""
    monkeypatch.setattr(asking, "hands", lambda _say, _progress: target.hands())
    monkeypatch.setattr("sampan.install.place.closed", lambda _folder: None)
    install(target.options(miniature(tmp_path / "mini-1")), target.hands())
    return target


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """The folder of release 2."""
    return miniature(tmp_path / "new/mini-2", 2)


def key(tmp_path: Path, name: str) -> tuple[Path, PublicKey]:
    """A fresh key pair: the private half's file."""
    path = tmp_path / name
    signing_keys.new_key(path, None)
    return path, keyring.read(signing_keys.public_half(path))


def upgrade(machine: Target, path: Path, *keys: PublicKey, **wishes: bool) -> Installed:
    """Of ``mini``."""
    found = lookup.find(None, prefix=machine.prefix)
    return installing.upgrade(path, found, replace(Wish(keys), **wishes), machine.said.append, QUIET)  # type: ignore[arg-type]


def test_a_tar_a_folder_and_a_delta_give_the_same_release(one: Target, two: Path, tmp_path: Path) -> None:
    since = delta_pack.since_bundle(tmp_path / "mini-1")
    made = delta_pack.make(two, *since, tmp_path / "d", progress=QUIET)
    for path in (packed(two, tmp_path / "tar"), two, Path(made.path)):
        assert upgrade(one, path).release == 2
        laid = {str(p.relative_to(two)): p.read_bytes() for p in two.rglob("*") if p.is_file()}
        there = one.prefix / "releases/2"
        assert {str(p.relative_to(there)): p.read_bytes() for p in there.rglob("*") if p.is_file()} == laid
        assert trusting.check(there, (), QUIET).problems == ()
        assert sorted(p.name for p in one.prefix.iterdir()) == ["config", "current", "installed.json", "releases"]
        back(one)
        shutil.rmtree(there)


def test_only_what_a_trusted_key_signed_is_taken_where_keys_are_trusted(
    one: Target, two: Path, tmp_path: Path
) -> None:
    (private, public), (stranger, _) = key(tmp_path, "site"), key(tmp_path, "stranger")
    before, tar = one.files(), packed(two, tmp_path / "tar")
    with pytest.raises(VerificationError, match="not signed"):
        upgrade(one, tar, public)
    trusting.sign(tar, stranger, None, QUIET)
    with pytest.raises(VerificationError, match="no key that is trusted"):
        upgrade(one, tar, public)
    assert one.files() == before
    assert not any(words[0].endswith("2/sampan") for words in one.systemd.log)
    trusting.sign(tar, private, None, QUIET)
    record = upgrade(one, tar, public)
    assert (record.release, record.overrides) == (2, ())
    assert any(public.fingerprint in line for line in one.said)


def test_a_persons_word_stands_in_for_a_signature_and_is_recorded(one: Target, two: Path, tmp_path: Path) -> None:
    record = upgrade(one, two, key(tmp_path, "site")[1], unsigned=True)
    assert [(each.what, each.release) for each in record.overrides] == [("unsigned", 2)]
    assert record.overrides[0].by == installing.who()


def test_a_signature_of_an_older_release_is_no_word_for_this_one(one: Target, two: Path, tmp_path: Path) -> None:
    private, public = key(tmp_path, "site")
    trusting.sign(tmp_path / "mini-1", private, None, QUIET)
    (two / "SHA256SUMS.dsse").write_bytes((tmp_path / "mini-1/SHA256SUMS.dsse").read_bytes())
    before = one.files()
    with pytest.raises(VerificationError, match="another bundle"):
        upgrade(one, two, public, unsigned=True)
    assert one.files() == before


def test_a_changed_byte_and_an_extra_file_are_refused_by_name(one: Target, two: Path) -> None:
    before = one.files()
    (two / "weights/tiny model.gguf").write_bytes(b"GGUG" * 1000)
    with pytest.raises(VerificationError, match="tiny model"):
        upgrade(one, two)
    (two / "weights/tiny model.gguf").write_bytes(b"GGUF" * 1000)
    (two / "extra.so").write_text("x")
    with pytest.raises(VerificationError, match=r"extra\.so"):
        upgrade(one, two)
    assert one.files() == before


def test_an_older_release_and_another_service_are_refused(one: Target, two: Path, tmp_path: Path) -> None:
    upgrade(one, two)
    with pytest.raises(IncompatibleError, match="downgrade"):
        upgrade(one, tmp_path / "mini-1")
    assert upgrade(one, tmp_path / "mini-1", allow_downgrade=True).overrides[-1].what == "downgrade"
    other = tmp_path / "other"
    text = (two / "manifest.json").read_text().replace('"name": "mini"', '"name": "other"')
    other.mkdir()
    plan = (two / "plan.json").read_text().replace('"name": "mini"', '"name": "other"')
    for name, data in (("manifest.json", text), ("plan.json", plan), ("SHA256SUMS", f"{'0' * 64}  plan.json\n")):
        (other / name).write_text(data)
    with pytest.raises(BadInputError) as caught:
        upgrade(one, other)
    assert caught.value.key == "install.other-service"


@pytest.mark.parametrize("what", ["missing", "empty", "text", "cut"])
def test_what_is_no_bundle_is_named_and_changes_nothing(one: Target, two: Path, tmp_path: Path, what: str) -> None:
    path, before = tmp_path / "x.tar", one.files()
    if what == "cut":
        whole = packed(two, tmp_path / "tar").read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    elif what != "missing":
        path.write_text("" if what == "empty" else "hello\n" * 200)
    with pytest.raises((BadInputError, VerificationError), match=r"x\.tar"):
        upgrade(one, path)
    assert one.files() == before


def test_a_delta_without_room_says_so_and_leaves_nothing(
    one: Target, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = delta_pack.since_bundle(tmp_path / "mini-1")
    made = Path(delta_pack.make(two, *since, tmp_path / "d", progress=QUIET).path)
    before = one.files()
    monkeypatch.setattr("sampan.bundle.delta.disk_usage", lambda _path: SimpleNamespace(free=0))
    with pytest.raises(FilesystemError):
        upgrade(one, made)
    assert one.files() == before


def test_what_a_killed_upgrade_by_delta_left_goes_with_the_next_change(one: Target, two: Path) -> None:
    left = one.prefix / ".rebuilt-99999999"
    (left / "mini-2").mkdir(parents=True)
    upgrade(one, two)
    assert not left.exists()
