"""``ship --sign`` and ``pack --sign``: signed between sealing and packing, and a bad key told at once."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.fakes.bundle_parts import PASSED, make_parts

from sampan.bundle import layout
from sampan.bundle.assemble import assemble
from sampan.bundle.seal import seal
from sampan.bundle.sums import content_digest
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError
from sampan.flow import signing_keys, stages, trusting
from sampan.flow.ship import ShipRequest, ship
from sampan.flow.signing_keys import Signing
from sampan.flow.tools import Tools

TOOLS = cast(Tools, SimpleNamespace(progress=SilentProgress()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Path(assemble(make_parts(tmp_path), tmp_path / "out").path)
    seal(made, None)
    return made


def test_the_tar_is_signed_and_its_sheet_names_the_signer(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    public = signing_keys.new_key(key, b"secret")
    rehearsal = replace(PASSED, bundle_digest=content_digest(folder))
    package = stages.pack(folder, rehearsal, None, tmp_path / "carry", TOOLS, Signing(key, b"secret"))
    checked = trusting.check(Path(package.path), [public], SilentProgress())
    assert checked.verdict.trusted
    assert checked.problems == ()
    with tarfile.open(package.path) as tar:
        sheet = tar.extractfile(f"mini-3/{layout.APPROVAL}")
        assert sheet is not None
        assert public.fingerprint in sheet.read().decode()


def test_a_wrong_password_leaves_no_tar(folder: Path, tmp_path: Path) -> None:
    signing_keys.new_key(tmp_path / "key", b"secret")
    with pytest.raises(BadInputError) as raised:
        stages.pack(folder, None, None, tmp_path / "carry", TOOLS, Signing(tmp_path / "key", b"wrong"))
    assert raised.value.key == "trust.password"
    assert not (tmp_path / "carry").exists()


def test_ship_looks_at_the_key_before_it_starts(tmp_path: Path) -> None:
    request = ShipRequest("no-such-weights", "no-such-target", tmp_path / "out", sign=Signing(tmp_path / "absent"))
    with pytest.raises(BadInputError) as raised:
        ship(request, cast(Tools, None))
    assert raised.value.key == "file.missing"


def test_the_password_is_in_no_printed_form(tmp_path: Path) -> None:
    assert "secret" not in repr(Signing(tmp_path / "key", b"secret"))
