"""A tar is verified and signed as it lies there."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.trust.conftest import make_signer

from sampan.bundle import layout
from sampan.bundle.pack import pack
from sampan.bundle.verify import verify as verify_folder
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, ExitCode, SampanError, VerificationError
from sampan.flow import trusting

QUIET = SilentProgress()
ANN, BOB = make_signer(), make_signer()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "ann"
    path.write_bytes(ANN.private_pem)
    path.chmod(0o600)
    return path


@pytest.fixture
def tar(sealed: Path, tmp_path: Path) -> Path:
    return Path(pack(sealed, tmp_path / "carry").path)


def test_a_packed_bundle_is_whole_and_unsigned(tar: Path) -> None:
    checked = trusting.check(tar, [ANN.public], QUIET)
    assert (checked.name, checked.release, checked.problems, checked.verdict.status) == ("mini", 3, (), "unsigned")


def test_signing_the_tar_gives_the_bytes_of_packing_the_signed_folder(
    tar: Path, sealed: Path, key: Path, tmp_path: Path
) -> None:
    done = trusting.sign(tar, key, None, QUIET)
    trusting.sign(sealed, key, None, QUIET)
    assert verify_folder(sealed) == ()
    again = pack(sealed, tmp_path / "again")
    assert done.sha256 == again.sha256 == hashlib.sha256(tar.read_bytes()).hexdigest()
    assert tar.with_name(f"{tar.name}.sha256").read_text() == f"{done.sha256}  {tar.name}\n"
    for path in (tar, sealed):
        assert trusting.check(path, [ANN.public], QUIET).verdict.status == "trusted"


def test_two_people_sign_and_an_old_signature_goes_with_the_old_files(tar: Path, key: Path, tmp_path: Path) -> None:
    trusting.sign(tar, key, None, QUIET)
    other = tmp_path / "bob"
    other.write_bytes(BOB.private_pem)
    other.chmod(0o600)
    trusting.sign(tar, other, None, QUIET)
    verdict = trusting.check(tar, [ANN.public, BOB.public], QUIET).verdict
    assert set(verdict.signers) == {ANN.public.id, BOB.public.id}


def test_a_key_that_others_can_read_signs_nothing(tar: Path, key: Path) -> None:
    key.chmod(0o640)
    before = tar.read_bytes()
    with pytest.raises(BadInputError) as raised:
        trusting.sign(tar, key, None, QUIET)
    assert raised.value.key == "trust.key-open"
    assert tar.read_bytes() == before


def rewrite(tar: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None]) -> None:
    """Write the archive again with every entry changed or left out; what a tamperer does."""
    entries = []
    with tarfile.open(tar) as old:
        for info in old:
            data = old.extractfile(info).read() if info.isfile() else b""  # type: ignore[union-attr]
            kept = change(info, data)
            entries += [kept] if kept else []
    with tarfile.open(tar, "w", format=tarfile.USTAR_FORMAT) as new:
        for info, data in entries:
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))


def other_weights(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    return info, data[:-1] + b"!" if info.name.endswith(".gguf") else data


def no_weights(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes] | None:
    return None if info.name.endswith(".gguf") else (info, data)


def no_signature(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes] | None:
    return None if info.name.endswith(".dsse") else (info, data)


@pytest.mark.parametrize(("change", "kind"), [(other_weights, "changed"), (no_weights, "missing")])
def test_a_tampered_tar_is_found_whoever_signed_it(
    tar: Path, key: Path, change: Callable[..., tuple[tarfile.TarInfo, bytes] | None], kind: str
) -> None:
    trusting.sign(tar, key, None, QUIET)
    rewrite(tar, change)
    checked = trusting.check(tar, [ANN.public], QUIET)
    assert [(one.kind, one.path) for one in checked.problems] == [(kind, "weights/mini.gguf")]
    with pytest.raises(VerificationError) as raised:
        trusting.sign(tar, key, None, QUIET)
    assert raised.value.key == "trust.damaged"


def test_a_swapped_file_with_swapped_sums_has_no_signature_any_more(tar: Path, key: Path) -> None:
    trusting.sign(tar, key, None, QUIET)
    swapped: dict[str, str] = {}

    def swap(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        fresh = data
        if info.name.endswith("README.txt"):
            fresh = data + b"hostile\n"
            swapped[hashlib.sha256(data).hexdigest()] = hashlib.sha256(fresh).hexdigest()
        elif info.name.endswith((layout.MANIFEST, layout.SUMS)):
            for old, new in swapped.items():
                fresh = fresh.replace(old.encode(), new.encode())
            swapped[hashlib.sha256(data).hexdigest()] = hashlib.sha256(fresh).hexdigest()
        return info, fresh

    def sums_last(one: Path) -> None:  # SHA256SUMS stands before the files that it lists, so go over it twice
        rewrite(one, swap)
        rewrite(one, swap)
        rewrite(one, swap)

    sums_last(tar)
    checked = trusting.check(tar, [ANN.public], QUIET)
    assert checked.verdict.status == "other-bundle"


def test_a_tar_that_lost_its_signature_is_unsigned(tar: Path, key: Path) -> None:
    trusting.sign(tar, key, None, QUIET)
    rewrite(tar, no_signature)
    assert trusting.check(tar, [ANN.public], QUIET).verdict.status == "unsigned"


def test_an_extra_file_is_named(tar: Path) -> None:
    def more(info: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        return info, data

    rewrite(tar, more)
    with tarfile.open(tar, "a") as archive:
        archive.addfile(tarfile.TarInfo("mini-3/engine/extra.so"), io.BytesIO())
    assert [(one.kind, one.path) for one in trusting.check(tar, [], QUIET).problems] == [("extra", "engine/extra.so")]


@pytest.mark.parametrize("share", [0, 0.3, 0.6])
def test_a_cut_tar_is_a_clear_error(tar: Path, share: float, tmp_path: Path) -> None:
    data = tar.read_bytes()
    tar.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(SampanError) as raised:
        trusting.check(tar, [], QUIET)
    assert raised.value.exit_code in (ExitCode.BAD_INPUT, ExitCode.VERIFICATION_FAILED)
    assert str(tar) in raised.value.message


def test_a_missing_bundle_and_a_plain_folder_are_named(tmp_path: Path) -> None:
    for path, key in ((tmp_path / "none.tar", "file.missing"), (tmp_path, "bundle.unsealed")):
        with pytest.raises(BadInputError) as raised:
            trusting.check(path, [], QUIET)
        assert raised.value.key == key


def test_sealing_again_drops_the_signature_of_what_was(sealed: Path, key: Path) -> None:
    from sampan.bundle.seal import seal

    trusting.sign(sealed, key, None, QUIET)
    seal(sealed, None)
    assert not (sealed / layout.SIGNATURE).exists()


def test_a_signature_may_not_be_smuggled_in_as_a_listed_file(sealed: Path) -> None:
    text = (sealed / layout.SUMS).read_text()
    (sealed / layout.SUMS).write_text(f"{'0' * 64}  {layout.SIGNATURE}\n{text}")
    assert [one.kind for one in verify_folder(sealed)] == ["sums"]
    shutil.rmtree(sealed)
