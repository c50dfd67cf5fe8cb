"""inspect and diff: what a bundle says of itself, and what another one changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.bundle_parts import put

from sampan.bundle import layout
from sampan.bundle.diff import Change, diff
from sampan.bundle.inspect import inspect
from sampan.bundle.pack import pack
from sampan.bundle.seal import seal
from sampan.errors import BadInputError
from sampan.spec.codec import to_data


def test_folder_and_tar_say_the_same(sealed: Path, tmp_path: Path) -> None:
    folder, tar = inspect(sealed), inspect(Path(pack(sealed, tmp_path / "carry").path))
    assert (folder.files, folder.size_bytes, folder.parts) == (tar.files, tar.size_bytes, tar.parts)
    assert (folder.name, folder.release, folder.approval, folder.materials) == ("mini", 3, True, False)
    assert sum(folder.parts.values()) == folder.size_bytes
    assert to_data(folder)["schema"] == "sampan/bundle-facts/1"


def test_a_claimed_signature_is_shown_and_a_damaged_one_is_none(sealed: Path) -> None:
    put(sealed / layout.SIGNATURE, b'{"signatures": [{"keyid": "abc", "sig": ""}]}')
    assert inspect(sealed).signers == ("abc",)
    put(sealed / layout.SIGNATURE, b'{"signatures": 3}')
    assert inspect(sealed).signers == ()


@pytest.mark.parametrize("kind", ["missing", "unsealed", "rubbish"])
def test_what_is_no_bundle_is_a_clear_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "unsealed":
        path.mkdir()
    if kind == "rubbish":
        path.write_bytes(b"rubbish" * 200)
    with pytest.raises(BadInputError):
        inspect(path)


def test_a_bundle_does_not_differ_from_itself(sealed: Path, tmp_path: Path) -> None:
    found = diff(sealed, Path(pack(sealed, tmp_path / "carry").path))
    assert (found.added, found.removed, found.changed, found.moved, found.facts) == ((), (), (), (), ())
    assert found.travels_bytes == 0


def test_each_kind_of_difference_is_named(sealed: Path, tmp_path: Path) -> None:
    tar = Path(pack(sealed, tmp_path / "carry").path)
    (sealed / "app/中文.txt").rename(sealed / "app/renamed.txt")
    put(sealed / "app/more.txt", b"more")
    put(sealed / "README.txt", b"other\n")
    (sealed / "start.sh").unlink()
    seal(sealed, None)
    found = diff(tar, sealed)
    assert found.added == ("app/more.txt",)
    assert found.moved == (("app/中文.txt", "app/renamed.txt"),)
    assert {"README.txt", "manifest.json", "rehearsal.txt"} == set(found.changed)
    assert set(found.removed) == {"start.sh", "APPROVAL.txt"}
    assert Change("rehearsal.status", "passed", "not run") in found.facts
    assert found.travels_bytes == sum((sealed / name).stat().st_size for name in (*found.changed, *found.added))
