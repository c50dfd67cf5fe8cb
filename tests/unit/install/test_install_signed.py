"""install.sh checks a signature with openssl alone, before anything of the bundle runs, under every shell."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
from tests.unit.install.conftest import make_bundle, make_plan, seal
from tests.unit.install.test_install_scripts import SCRIPTS, applets, folder, run, shell
from tests.unit.trust.conftest import Signer, make_signer

from sampan.bundle.sums import hash_file
from sampan.trust import envelope as dsse
from sampan.trust import signing, statement
from sampan.trust.envelope import Envelope
from sampan.trust.statement import SignedBundle

__all__ = ["folder", "shell"]  # fixtures

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed here")
ANN, BOB = make_signer(), make_signer()


def sign(bundle: Path, *signers: Signer, release: int = 1, name: str = "mini", sums: str | None = None) -> Path:
    """Write the bundle's signature; the last arguments make it one of another bundle."""
    claims = SignedBundle(name, release, sums or hash_file(bundle / "SHA256SUMS"))
    made = Envelope(statement.of_bundle(claims), ())
    for each in signers:
        made = signing.sign(made, each.private)
    (bundle / "SHA256SUMS.dsse").write_bytes(dsse.to_bytes(made))
    return bundle


@pytest.fixture
def key(folder: Path) -> Path:
    """Ann's public key, beside the bundle."""
    if shutil.which("busybox"):
        tools = applets(folder)
        for name in ("openssl", "mktemp", "rm"):
            if not (tools / name).exists():
                (tools / name).symlink_to(shutil.which("openssl" if name == "openssl" else "busybox") or name)
    path = folder.parent / "ann.pub"
    path.write_text(ANN.public.pem)
    return path


def test_a_signed_bundle_is_handed_over(shell: list[str], folder: Path, key: Path) -> None:
    done = run(shell, sign(folder, BOB, ANN), "--key", str(key))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Signed by the key in {key}" in done.stdout
    assert "<install>" in done.stdout


def test_a_relative_key_counts_from_where_the_person_stands(shell: list[str], folder: Path, key: Path) -> None:
    assert run(shell, sign(folder, ANN), "--key=ann.pub", cwd=str(key.parent)).returncode == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_no_trusted_key_signed_is_refused(shell: list[str], folder: Path, key: Path, lang: str) -> None:
    for bundle in (folder, sign(folder, BOB)):
        done = run(shell, bundle, "--key", str(key), lang=lang)
        assert done.returncode == 9
        assert "--unsigned" in done.stderr
        assert "<install>" not in done.stdout
    assert "./install.sh --key KEY.pub" in done.stderr or "./install.sh --key 公钥" in done.stderr
    assert "./sampan trust add" in done.stderr
    assert str(key) in done.stderr


def test_a_signature_of_another_release_name_or_list_is_refused(shell: list[str], folder: Path, key: Path) -> None:
    for other in ({"release": 2}, {"name": "other"}, {"sums": "ab" * 32}):
        done = run(shell, sign(folder, ANN, **other), "--key", str(key))
        assert done.returncode == 9, other
        assert "another bundle or release" in done.stderr
        assert "<install>" not in done.stdout


def test_a_damaged_signature_is_refused(shell: list[str], folder: Path, key: Path) -> None:
    whole = sign(folder, ANN) / "SHA256SUMS.dsse"
    text = whole.read_bytes()
    data = json.loads(text)
    payload = base64.b64decode(data["payload"])
    forged = {**data, "payload": base64.b64encode(payload.replace(b'"release": 1', b'"release": 2')).decode()}
    for damage in (text[:200], text[: len(text) // 2], b"", json.dumps(forged, indent=1).encode()):
        whole.write_bytes(damage)
        done = run(shell, folder, "--key", str(key))
        assert done.returncode == 9, damage
        assert "<install>" not in done.stdout


def test_a_person_may_insist(shell: list[str], folder: Path, key: Path) -> None:
    done = run(shell, folder, "--unsigned")
    assert done.returncode == 0
    assert "not checked" in done.stdout


def test_a_signature_that_nobody_can_check_is_mentioned(shell: list[str], folder: Path, key: Path) -> None:
    done = run(shell, sign(folder, ANN))
    assert done.returncode == 0
    assert "./install.sh --key FILE" in done.stdout


def test_a_missing_key_and_a_missing_openssl_are_named(folder: Path, key: Path, tmp_path: Path) -> None:
    words = [shutil.which("dash") or "sh"]
    assert run(words, sign(folder, ANN), "--key", "/nowhere.pub").returncode == 3
    if shutil.which("busybox"):
        (applets(folder) / "openssl").unlink()
        done = run(["busybox", "sh"], folder, "--key", str(key))
        assert done.returncode == 5
        assert "openssl" in done.stderr
        assert "sampan verify --key KEY.pub" in done.stderr


def test_no_temporary_folder_stays(shell: list[str], folder: Path, key: Path, tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    sign(folder, ANN)
    for words in ((), ("--key", str(key))):
        run(shell, folder, *words, TMPDIR=str(place))
    sign(folder, BOB)
    run(shell, folder, "--key", str(key), TMPDIR=str(place))
    assert list(place.iterdir()) == []


def test_the_release_number_of_the_plan_is_read(shell: list[str], tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "mini-12", make_plan(release=12))
    shutil.copy(SCRIPTS / "install.sh", bundle / "install.sh")
    key = tmp_path / "ann.pub"
    key.write_text(ANN.public.pem)
    if shell[0] == "busybox":
        pytest.skip("the reading is the same; its tools are not linked here")
    assert run(shell, sign(seal(bundle), ANN, release=12), "--key", str(key)).returncode == 0
    assert run(shell, sign(bundle, ANN, release=1), "--key", str(key)).returncode == 9
