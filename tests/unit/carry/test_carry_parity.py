"""Parity: any parts that are lost or damaged, up to as many as there are parity parts, come back right."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.typed import typed

from sampan.carry import field, parity, parts
from sampan.carry.join import JOINING_SUFFIX, read_list
from sampan.carry.mend import join_mended
from sampan.carry.split import split
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, FilesystemError, UsageError, VerificationError

QUIET = SilentProgress()


def cut(folder: Path, size: int, count: int, parity_parts: int) -> tuple[bytes, parts.PartList]:
    """A file of ``size`` bytes in ``count`` parts; the whole is taken away."""
    content = random.Random(size).randbytes(size)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "x.tar").write_bytes(content)
    listed = split(folder / "x.tar", folder, str(count), None, QUIET, parity_parts=parity_parts)
    (folder / "x.tar").unlink()
    return content, listed


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_loss_up_to_the_parity_is_made_good(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    size, extra = data.draw(st.integers(50, 5000)), data.draw(st.integers(1, 4))
    content, listed = cut(folder := tmp_path_factory.mktemp("p"), size, data.draw(st.integers(1, 12)), extra)
    names = [part.file for part in (*listed.parts, *listed.parity)]
    for name in data.draw(st.permutations(names))[: data.draw(st.integers(0, extra))]:
        path = folder / name
        if data.draw(st.booleans()):
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-1] + b"?" if data.draw(st.booleans()) else b"short")
    whole, _ = join_mended(folder, listed, folder / "out", QUIET)
    assert whole.read_bytes() == content


def test_one_more_than_the_parity_is_refused_by_name_and_nothing_changed(tmp_path: Path) -> None:
    _, listed = cut(tmp_path, 10_000, 7, 2)
    (tmp_path / "x.tar.002").unlink()
    (tmp_path / "x.tar.005").write_bytes(b"bad")
    (tmp_path / "x.tar.parity.002").unlink()
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(VerificationError, match="need 2,5") as caught:
        join_mended(tmp_path, listed, tmp_path, QUIET)
    assert (caught.value.key, caught.value.values["parity"]) == ("carry.need-parity", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_without_parity_the_lost_ones_are_asked_for(tmp_path: Path) -> None:
    _, listed = cut(tmp_path, 10_000, 7, 0)
    (tmp_path / "x.tar.002").unlink()
    with pytest.raises(VerificationError) as caught:
        join_mended(tmp_path, listed, tmp_path, QUIET)
    assert caught.value.key == "carry.need"


def test_mended_parts_can_be_consumed_but_not_mended_once_some_are(tmp_path: Path) -> None:
    content, listed = cut(tmp_path, 10_000, 7, 2)
    (tmp_path / "x.tar.001").unlink()
    whole, made = join_mended(tmp_path, listed, tmp_path, QUIET, consume=True)
    assert (whole.read_bytes(), made) == (content, (1,))
    _, listed = cut(tmp_path / "again", 10_000, 7, 2)
    (tmp_path / "again" / f"x.tar{JOINING_SUFFIX}").write_bytes((tmp_path / "again/x.tar.001").read_bytes())
    for number in (1, 4):
        (tmp_path / f"again/x.tar.00{number}").unlink()
    with pytest.raises(VerificationError) as caught:
        join_mended(tmp_path / "again", listed, tmp_path / "again", QUIET, consume=True)
    assert (caught.value.key, caught.value.values["numbers"]) == ("carry.need", "4")


def test_what_comes_out_wrong_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, listed = cut(tmp_path, 10_000, 7, 1)
    (tmp_path / "x.tar.003").unlink()
    monkeypatch.setattr(parity, "good", lambda *_: (0,))
    (tmp_path / "x.tar.parity.001").write_bytes(bytes(listed.parity[0].size))
    with pytest.raises(VerificationError) as caught:
        join_mended(tmp_path, listed, tmp_path / "out", QUIET)
    assert caught.value.key == "carry.repaired-wrong"
    assert not (tmp_path / "x.tar.003").exists()
    assert not list(tmp_path.glob(".*"))


def test_many_parts_and_a_full_disk_are_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as many:
        cut(tmp_path, 255 * 40, 255, 2)
    assert many.value.key == "carry.parity-many"
    cut(tmp_path / "fits", 254 * 40, 254, 2)
    monkeypatch.setattr("sampan.carry.split.disk_usage", lambda _path: type("D", (), {"free": 10_500}))
    with pytest.raises(FilesystemError):
        cut(tmp_path / "full", 10_000, 10, 1)


def test_a_list_with_other_parity_than_could_be_cut_is_refused(tmp_path: Path) -> None:
    _, listed = cut(tmp_path, 1000, 3, 1)
    path = tmp_path / "x.tar.parts.json"
    text = path.read_text()
    for bad in ("../parity.001", "x.tar.parity.002"):
        path.write_text(text.replace(listed.parity[0].file, bad))
        with pytest.raises(BadInputError):
            read_list(path)


def test_parity_leaves_coreutils_their_way(tmp_path: Path) -> None:
    content, _ = cut(tmp_path, 5000, 4, 2)
    joined = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("x.tar.[0-9]*")))
    assert joined == content
    assert "parity" not in (tmp_path / "x.tar.parts.sha256").read_text()


def test_as_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytes(range(256)) * 20
    (tmp_path / "x.tar").write_bytes(content)
    assert typed("split", tmp_path / "x.tar", "--size", "5", "--parity", "1", "--out", tmp_path / "p") == 0
    (tmp_path / "p/x.tar.004").unlink()
    assert typed("join", tmp_path / "p") == 0
    assert "computed from parity: 4" in capsys.readouterr().out
    assert hashlib.sha256((tmp_path / "p/x.tar").read_bytes()).digest() == hashlib.sha256(content).digest()


@given(st.integers(1, 255), st.integers(1, 255), st.integers(0, 255))
def test_the_field_is_a_field(left: int, right: int, third: int) -> None:
    assert field.multiply(left, field.inverse(left)) == 1
    assert field.multiply(left, right) == field.multiply(right, left)
    assert field.multiply(left, right ^ third) == field.multiply(left, right) ^ field.multiply(left, third)
    assert field.multiply(field.multiply(left, right), third) == field.multiply(left, field.multiply(right, third))
