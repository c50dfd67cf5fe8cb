"""Packing and unpacking: the same bytes everywhere, nothing half-written, nothing hostile let in."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sampan.bundle import layout
from sampan.bundle.assemble import assemble
from sampan.bundle.pack import pack
from sampan.bundle.parts import BundleParts
from sampan.bundle.seal import seal
from sampan.bundle.unpack import unpack
from sampan.bundle.verify import verify
from sampan.errors import BadInputError, FilesystemError, SampanError, VerificationError
from sampan.spec.artefacts import Rehearsal


def test_package_says_what_it_is(sealed: Path, tmp_path: Path) -> None:
    package = pack(sealed, tmp_path / "carry")
    tar = tmp_path / "carry" / "mini-3.tar"
    assert package.path == str(tar)
    assert package.sha256 == hashlib.sha256(tar.read_bytes()).hexdigest()
    assert package.size_bytes == tar.stat().st_size
    assert (package.name, package.release, package.rehearsed) == ("mini", 3, True)
    assert tar.stat().st_mode & 0o777 == 0o644
    done = subprocess.run(["sha256sum", "-c", "mini-3.tar.sha256"], cwd=tar.parent, capture_output=True, check=False)
    assert done.returncode == 0


def test_two_packs_from_different_folders_and_umasks_are_the_same_bytes(
    parts_in: Callable[[Path], BundleParts], passed: Rehearsal, tmp_path: Path
) -> None:
    digests = set()
    for where, umask in (("a", 0o000), ("b/deeper", 0o077)):
        old = os.umask(umask)
        try:
            folder = Path(assemble(parts_in(tmp_path / where), tmp_path / where / "out").path)
            seal(folder, passed)
            digests.add(pack(folder, tmp_path / where).sha256)
        finally:
            os.umask(old)
    assert len(digests) == 1


def test_creation_order_does_not_matter(sealed: Path, passed: Rehearsal, tmp_path: Path) -> None:
    first = pack(sealed, tmp_path / "one").sha256
    mirror = tmp_path / "mirror"
    for entry in reversed(layout.entries(sealed)):
        if entry.kind == "file":
            (mirror / entry.path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(sealed / entry.path, mirror / entry.path)
    seal(mirror, passed)
    assert pack(mirror, tmp_path / "two").sha256 == first


@pytest.mark.parametrize("tool", [["tar"], ["busybox", "tar"]])
def test_tar_programs_unpack_it_and_it_verifies(sealed: Path, tmp_path: Path, tool: list[str]) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not on this machine")
    long_path = "app/" + "/".join(["a-long-folder-name-of-a-wheel"] * 12) + "/" + "文件" * 40 + ".txt"
    (sealed / long_path).parent.mkdir(parents=True)
    (sealed / long_path).write_text("long")
    seal(sealed, None)
    tar = pack(sealed, tmp_path / "carry").path
    there = tmp_path / "there"
    there.mkdir()
    subprocess.run([*tool, "-xf", tar], cwd=there, check=True)
    assert verify(there / "mini-3") == ()
    assert (there / "mini-3" / long_path).read_text() == "long"


def test_headers_name_no_user_and_no_time(sealed: Path, tmp_path: Path) -> None:
    with tarfile.open(pack(sealed, tmp_path).path) as archive:
        members = archive.getmembers()
    assert {(m.uid, m.gid, m.uname, m.gname, int(m.mtime)) for m in members} == {(0, 0, "", "", layout.EPOCH)}
    assert {m.mode for m in members} == {0o755, 0o644}
    assert [m.name for m in members] == sorted((m.name for m in members), key=str.encode)


def test_an_unsealed_or_changed_folder_is_not_packed(sealed: Path, tmp_path: Path) -> None:
    (sealed / "extra").touch()
    with pytest.raises(VerificationError) as caught:
        pack(sealed, tmp_path / "carry")
    assert "extra" in caught.value.message
    (sealed / "extra").unlink()
    (sealed / "SHA256SUMS").unlink()
    with pytest.raises(VerificationError):
        pack(sealed, tmp_path / "carry")
    (sealed / "manifest.json").unlink()
    with pytest.raises(BadInputError):
        pack(sealed, tmp_path / "carry")


def test_a_foreign_file_of_that_name_stays(sealed: Path, tmp_path: Path) -> None:
    (tmp_path / "mini-3.tar").write_text("something else")
    with pytest.raises(FilesystemError) as caught:
        pack(sealed, tmp_path)
    assert caught.value.key == "bundle.foreign"
    assert (tmp_path / "mini-3.tar").read_text() == "something else"


def test_an_older_tar_of_ours_is_replaced(sealed: Path, tmp_path: Path) -> None:
    pack(sealed, tmp_path / "carry")
    seal(sealed, None)
    package = pack(sealed, tmp_path / "carry")
    assert not package.rehearsed
    assert hashlib.sha256((tmp_path / "carry/mini-3.tar").read_bytes()).hexdigest() == package.sha256


def test_a_full_disk_leaves_the_old_tar_and_nothing_half_written(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pack(sealed, tmp_path / "carry").sha256

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FilesystemError) as caught:
        pack(sealed, tmp_path / "carry")
    assert caught.value.key == "disk.full"
    names = sorted(path.name for path in (tmp_path / "carry").iterdir())
    assert names in (["mini-3.tar"], ["mini-3.tar", "mini-3.tar.sha256"])
    assert hashlib.sha256((tmp_path / "carry/mini-3.tar").read_bytes()).hexdigest() == before


def test_what_a_killed_run_left_is_swept(sealed: Path, tmp_path: Path) -> None:
    (tmp_path / "carry").mkdir()
    (tmp_path / "carry" / ".mini-3.tar.part-dead").write_bytes(b"half")
    pack(sealed, tmp_path / "carry")
    assert sorted(path.name for path in (tmp_path / "carry").iterdir()) == ["mini-3.tar", "mini-3.tar.sha256"]


def test_unpacking_gives_the_folder_back_and_packing_it_the_same_tar(sealed: Path, tmp_path: Path) -> None:
    package = pack(sealed, tmp_path / "carry")
    folder = unpack(Path(package.path), tmp_path / "there")
    assert folder == tmp_path / "there" / "mini-3"
    assert verify(folder) == ()
    assert layout.entries(folder) == layout.entries(sealed)
    assert pack(folder, tmp_path / "again").sha256 == package.sha256


def test_unpacking_over_something_is_refused(sealed: Path, tmp_path: Path) -> None:
    package = pack(sealed, tmp_path / "carry")
    (tmp_path / "there" / "mini-3").mkdir(parents=True)
    with pytest.raises(FilesystemError):
        unpack(Path(package.path), tmp_path / "there")


def _info(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, link
    return info


HOSTILE: dict[str, list[tarfile.TarInfo]] = {
    "absolute": [_info("/etc/cron.d/evil")],
    "dots": [_info("b-1/../../evil")],
    "dot": [_info("b-1/./evil")],
    "symbolic link": [_info("b-1/link", tarfile.SYMTYPE, link="/etc"), _info("b-1/link/evil")],
    "hard link": [_info("b-1/link", tarfile.LNKTYPE, link="/etc/shadow")],
    "device": [_info("b-1/sda", tarfile.BLKTYPE)],
    "pipe": [_info("b-1/pipe", tarfile.FIFOTYPE)],
    "sparse": [_info("b-1/huge", tarfile.GNUTYPE_SPARSE)],
    "set-id": [_info("b-1/su", mode=0o4755)],
    "world-writable": [_info("b-1/open", mode=0o666)],
    "twice": [_info("b-1/a"), _info("b-1/a")],
    "twice but for case": [_info("b-1/Install.sh"), _info("b-1/install.sh")],
    "folder twice but for case": [_info("b-1/App/x"), _info("b-1/app/y")],
    "twice but for composition": [_info("b-1/e\u0301"), _info("b-1/\u00e9")],
    "file that is a folder": [_info("b-1/a"), _info("b-1/a/b")],
    "folder that is a file": [_info("b-1/a/b"), _info("b-1/a")],
    "two tops": [_info("b-1/a"), _info("c-1/a")],
    "no top": [_info("a")],
    "newline": [_info("b-1/a\nb")],
    "backslash": [_info("b-1/..\\evil")],
    "empty": [],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_tars_are_refused_before_a_byte_is_written(tmp_path: Path, case: str) -> None:
    tar = tmp_path / "evil.tar"
    with tarfile.open(tar, "w", format=tarfile.GNU_FORMAT) as archive:
        for info in HOSTILE[case]:
            archive.addfile(info)
    with pytest.raises(VerificationError) as caught:
        unpack(tar, tmp_path / "there")
    assert caught.value.key == "bundle.tar-entry"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.tar"]


def test_pax_headers_are_refused(tmp_path: Path) -> None:
    tar = tmp_path / "evil.tar"
    with tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as archive:
        info = _info("b-1/a")
        info.pax_headers = {"path": "../../evil"}
        archive.addfile(info)
    with pytest.raises(VerificationError):
        unpack(tar, tmp_path / "there")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:700],
        lambda data: data[:512],
        lambda data: data[:-10240],
        lambda data: b"\x1f\x8b" + data[2:],
        lambda data: data[:600] + bytes(100) + data[700:],
        lambda _: b"",
    ],
)
def test_cut_or_damaged_tars_never_give_a_folder_that_verifies(
    sealed: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    tar = Path(pack(sealed, tmp_path / "carry").path)
    tar.write_bytes(damage(tar.read_bytes()))
    try:
        folder = unpack(tar, tmp_path / "there")
    except SampanError:
        assert not (tmp_path / "there").exists()
    else:
        assert verify(folder) != ()


def test_a_header_that_promises_more_than_the_file_has_is_cut(tmp_path: Path) -> None:
    info = _info("b-1/a")
    info.size = 1 << 62
    (tmp_path / "evil.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(20480))
    with pytest.raises(BadInputError) as caught:
        unpack(tmp_path / "evil.tar", tmp_path / "there")
    assert caught.value.key == "bundle.tar-cut"


def test_a_huge_long_name_is_refused_without_reading_it(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 20
    data = io.BytesIO(info.tobuf(tarfile.GNU_FORMAT) + b"a" * (1 << 20) + bytes(1024))
    (tmp_path / "evil.tar").write_bytes(data.getvalue())
    with pytest.raises(VerificationError):
        unpack(tmp_path / "evil.tar", tmp_path / "there")
