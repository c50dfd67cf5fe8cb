"""A service over TLS: paths in unit and record, a key for the service's user alone, and what preflight refuses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes import certificates
from tests.unit.install.conftest import Target, make_bundle, make_plan

from sampan.errors import IncompatibleError
from sampan.install import config, lookup
from sampan.install.rollback import rollback
from sampan.install.steps import install


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cert.pem and key.pem."""
    folder = tmp_path_factory.mktemp("tls")
    certificates.make(folder)
    return folder


@pytest.fixture
def files(pair: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Certificate and key of the administrator, root's."""
    monkeypatch.setattr("sampan.install.tls_files._HIDDEN", ())
    monkeypatch.setattr("sampan.install.place.closed", lambda _folder: None)
    folder = target.root / "etc/sampan/mini"
    shutil.copytree(pair, folder)
    (folder / "key.pem").chmod(0o600)
    (folder / "cert.pem").chmod(0o644)
    return folder / "cert.pem", folder / "key.pem"


def test_a_release_that_speaks_tls_can_be_rolled_back_to_one_that_does_not(
    target: Target, bundle: Path, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[tuple[int, int]] = []
    monkeypatch.setattr("os.fchown", lambda _handle, user, group: owners.append((user, group)))
    monkeypatch.setattr("sampan.install.key_file._owner", lambda _handle: 0)
    monkeypatch.setattr("sampan.install.tls_files._owners", lambda _machine, _user: iter((files[1].stat().st_uid,)))
    asked: list[bool] = []
    hands = replace(target.hands(), health=lambda *words: asked.append(words[2]) or target.hands().health(*words))  # type: ignore[func-returns-value]
    install(target.options(bundle), hands)
    second = make_bundle(tmp_path / "mini-2", make_plan(release=2))
    cert, key = map(str, files)
    record = install(target.options(second, certificate=cert, certificate_key=key), hands)
    assert f" --tls-cert {cert} --tls-key {key}\n" in target.unit.read_text()
    assert asked == [False, True]
    assert owners[-1] == (999, 999)
    assert any("https://127.0.0.1" in line for line in target.said)
    assert config.record_of(target.prefix, 2) == record
    machine = lookup.find(None, prefix=target.prefix).machine(target.systemd, target.root)
    back = rollback(target.prefix, None, machine, hands, health_seconds=5)
    assert (back.certificate, asked[-1]) == (None, False)
    assert "--tls" not in target.unit.read_text()
    assert rollback(target.prefix, None, machine, hands, health_seconds=5).certificate == cert
    third = install(target.options(make_bundle(tmp_path / "mini-3", make_plan(release=3))), hands)
    assert (third.certificate, third.certificate_key) == (cert, key), "what is not given is as before"


def _open(_cert: Path, key: Path) -> str:
    key.chmod(0o640)
    return "chmod 600"


def _closed_certificate(cert: Path, _key: Path) -> str:
    cert.chmod(0o600)
    return "chmod 644"


def _damaged(cert: Path, _key: Path) -> str:
    cert.write_text("no certificate")
    return str(cert)


def _missing(_cert: Path, key: Path) -> str:
    key.unlink()
    return "no such file"


def _link(_cert: Path, key: Path) -> str:
    key.rename(key.with_name("real.pem"))
    key.symlink_to("real.pem")
    return "it is a link"


@pytest.mark.parametrize("spoil", [_open, _closed_certificate, _damaged, _missing, _link])
def test_files_that_the_service_could_not_serve_with_are_refused_before_anything_is_done(
    target: Target,
    bundle: Path,
    files: tuple[Path, Path],
    spoil: Callable[[Path, Path], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sampan.install.tls_files._owners", lambda _machine, _user: iter((files[1].stat().st_uid,)))
    monkeypatch.setattr("sampan.install.tls_files.account.ids", lambda *_: None)
    words = spoil(*files)
    with pytest.raises(IncompatibleError) as caught:
        install(target.options(bundle, certificate=str(files[0]), certificate_key=str(files[1])), target.hands())
    assert caught.value.values["codes"] == "tls-unfit"
    assert words in str(caught.value)
    assert not (target.prefix / "releases").exists()


def test_another_owner_or_half_a_pair_or_a_hidden_folder_is_refused(
    target: Target, bundle: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = map(str, files)
    monkeypatch.setattr("sampan.install.tls_files._owners", lambda _machine, _user: iter((4242,)))
    with pytest.raises(IncompatibleError, match="belong to root or to sampan-mini"):
        install(target.options(bundle, certificate=cert, certificate_key=key), target.hands())
    with pytest.raises(IncompatibleError, match="belong together"):
        install(target.options(bundle, certificate=cert), target.hands())
    monkeypatch.setattr("sampan.install.tls_files._HIDDEN", (str(target.root),))
    with pytest.raises(IncompatibleError, match="home and temporary"):
        install(target.options(bundle, certificate=cert, certificate_key=key), target.hands())
