"""Public keys as PEM, and the folder of trusted ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from tests.unit.trust.conftest import Signer

from sampan.errors import BadInputError, FilesystemError
from sampan.trust import keyring, keys, signing


def pem_of(private: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey) -> bytes:
    return private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def test_the_pem_is_the_one_that_openssl_knows(ann: Signer) -> None:
    assert ann.public.pem.encode() == pem_of(ann.private)
    assert keys.parse(ann.public.pem.encode(), where="x") == ann.public
    command = "openssl pkey -pubin -outform DER | sha256sum"
    done = subprocess.run(["sh", "-c", command], input=ann.public.pem, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == ann.public.id


@pytest.mark.parametrize("ending", ["\r\n", "\n\n"])
def test_a_pem_that_went_through_windows_is_still_read(ann: Signer, ending: str) -> None:
    text = "Bag Attributes\n" + ann.public.pem
    assert keys.parse(text.replace("\n", ending).encode(), where="x") == ann.public


def test_what_is_no_public_key_of_ours_is_refused(ann: Signer) -> None:
    private = ann.private_pem
    other_kinds = (
        pem_of(ec.generate_private_key(ec.SECP384R1())),
        pem_of(ed25519.Ed25519PrivateKey.generate()),
        ann.public.pem.replace("MFkw", "MFkx").encode(),
    )
    cases = [(private, "trust.private-key")]
    cases += [(pem, "trust.key-kind") for pem in other_kinds]
    damaged = (
        b"",
        b"\xff\xfe",
        b"A" * 9000,
        ann.public.pem[:60].encode(),
        ann.public.pem.replace("MFkw", "M?kw").encode(),
    )
    cases += [(pem, "trust.not-a-key") for pem in damaged]
    for pem, key in cases:
        with pytest.raises(BadInputError) as raised:
            keys.parse(pem, where="key.pub")
        assert raised.value.key == key, pem
        assert "key.pub" in raised.value.message


def test_fingerprints_are_compared_as_people_write_them(ann: Signer, bob: Signer) -> None:
    plain = ann.public.id
    written = (plain, plain.upper(), f"SHA256:{plain}", " ".join(plain[i : i + 4] for i in range(0, 64, 4)))
    assert all(keys.same_fingerprint(ann.public, one) for one in written)
    wrong = ("", "SHA256:", plain[:63], plain[1:], bob.public.fingerprint)
    assert not any(keys.same_fingerprint(ann.public, one) for one in wrong)


def test_a_private_key_is_read_with_its_password_only() -> None:
    pem, public = signing.new_key(b"geheim")
    assert signing.public(signing.load_key(pem, b"geheim", where="k")) == public
    plain = signing.new_key(None)[0]
    for text, password in ((pem, None), (pem, b"other"), (plain, b"needless")):
        with pytest.raises(BadInputError) as raised:
            signing.load_key(text, password, where="k")
        assert raised.value.key == "trust.password"
    for text in (b"", b"no key", plain[:80]):
        with pytest.raises(BadInputError) as raised:
            signing.load_key(text, None, where="k")
        assert raised.value.key == "trust.not-a-key"


def test_the_keyring_holds_what_was_added_until_it_is_removed(tmp_path: Path, ann: Signer, bob: Signer) -> None:
    folder = tmp_path / "etc" / "keys"
    assert keyring.load(folder) == ()
    for each in (ann, bob, ann):
        assert keyring.add(folder, each.public).stat().st_mode & 0o777 == 0o644
    assert set(keyring.load(folder)) == {ann.public, bob.public}
    (folder / "README").write_text("not a key, and not named as one")
    assert keyring.remove(folder, ann.public.id[:8]) == ann.public
    assert keyring.load(folder) == (bob.public,)
    for typed in (ann.public.id, bob.public.id[:7], ""):
        with pytest.raises(BadInputError) as raised:
            keyring.remove(folder, typed)
        assert raised.value.key == "trust.no-such-key"


def test_a_keyring_that_others_may_write_to_is_no_trust(tmp_path: Path, ann: Signer) -> None:
    file = keyring.add(tmp_path / "keys", ann.public)
    for path in (file, file.parent):
        before = path.stat().st_mode
        path.chmod(before | 0o020)
        with pytest.raises(FilesystemError) as raised:
            keyring.load(file.parent)
        assert raised.value.key == "trust.writable"
        assert str(path) in raised.value.message
        path.chmod(before)


def test_a_damaged_key_is_not_silently_no_key(tmp_path: Path, ann: Signer) -> None:
    file = keyring.add(tmp_path / "keys", ann.public)
    file.write_text("cut")
    with pytest.raises(BadInputError):
        keyring.load(file.parent)
