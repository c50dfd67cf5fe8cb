"""Archives as input: every format, what is wrong with them, and that nothing of it leaves its folder."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import io
import lzma
import os
import struct
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sampan.audit.archives import limits
from sampan.audit.archives.contents import Contents
from sampan.audit.archives.limits import Budget
from sampan.audit.archives.member import clean, lead
from sampan.audit.archives.unpack import unpack
from sampan.audit.audit import audit
from sampan.errors import BadInputError
from sampan.spec.artefacts import AuditReport
from sampan.spec.target import TargetProfile

Put = Callable[[str, bytes], Path]
Make = Callable[..., Any]
DATA = Path(__file__).parents[2] / "data" / "audit-hostile"


def tar(members: dict[str, bytes | tarfile.TarInfo], *, form: int = tarfile.GNU_FORMAT) -> bytes:
    """An uncompressed tar. A TarInfo as value is written as it stands."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """A link or device."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def deb(data: bytes, name: str = "data.tar.xz") -> bytes:
    """A Debian package with that data part."""

    def part(title: str, content: bytes) -> bytes:
        header = f"{title:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        return header + content + b"\n" * (len(content) % 2)

    return b"!<arch>\n" + part("debian-binary", b"2.0\n") + part("control.tar.xz", b"") + part(name, data)


def _opened(tmp_path: Path, path: Path) -> Contents:
    folder = tmp_path / "opened"
    folder.mkdir()
    return unpack(path, folder, Budget())


def _codes(report: AuditReport) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in report.findings]


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".tar": lambda data: data,
    ".tar.gz": gzip.compress,
    ".tgz": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]) + bytes(8),
    ".tar.xz": lzma.compress,
    ".tar.bz2": bz2.compress,
    ".tar.zst": lambda data: zstandard.ZstdCompressor().compress(data),
    ".deb": lambda data: deb(lzma.compress(data)),
}


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_every_form_of_tar_is_read(put: Put, make: Make, kylin: TargetProfile, suffix: str) -> None:
    data = tar({"./pkg/x.so": make(machine=62).build(), "pkg/notes.txt": b"hello" * 999})
    path = put(f"a{suffix}", COMPRESSED[suffix](data))
    (finding,) = audit([path], kylin).findings
    assert (finding.code, finding.path) == ("arch.machine", f"{path}!pkg/x.so")


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_long_names_of_each_tar_format(put: Put, make: Make, kylin: TargetProfile, form: int) -> None:
    name = "/".join(["long" * 12] * (4 if form == tarfile.USTAR_FORMAT else 9)) + "/x.so"
    path = put("a.tar", tar({name: make(machine=62).build()}, form=form))
    assert audit([path], kylin).findings[0].path == f"{path}!{name}"


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_zips_are_read(put: Put, make: Make, kylin: TargetProfile, compression: int) -> None:
    path = put("a.zip", zipped({"bin/x": make(machine=62).build(), "d/": b""}, compression))
    report = audit([path], kylin)
    assert [(finding.code, finding.path) for finding in report.findings] == [("arch.machine", f"{path}!bin/x")]
    assert (report.files, report.elf_files) == (3, 1)


def test_archives_within_archives_are_opened(put: Put, make: Make, kylin: TargetProfile) -> None:
    inner = zipped({"x.so": make(machine=62).build()})
    path = put("a.tar.gz", gzip.compress(tar({"wheels/inner.zip": inner})))
    assert audit([path], kylin).findings[0].path == f"{path}!wheels/inner.zip!x.so"


def test_archives_in_a_folder_are_opened(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("d/a.zip", zipped({"x.so": make(machine=62).build()}))
    assert audit([path.parent], kylin).findings[0].path == f"{path}!x.so"


def test_libraries_inside_of_one_archive_serve_one_another(put: Put, make: Make, kylin: TargetProfile) -> None:
    library = make(soname="liba-1.so").build()
    user = make(needed=["liba-1.so", "libb.so"], runpath="$ORIGIN/../pkg.libs").build()
    path = put("a.zip", zipped({"pkg.libs/liba-1.so": library, "pkg/x.so": user}))
    (finding,) = audit([path], kylin).findings
    assert finding.code == "closure.missing"
    assert dict(finding.values)["libraries"] == "libb.so"
    assert dict(finding.values)["searched"] == f"{path}!pkg.libs, kylin"


def test_links_inside_of_an_archive_serve_too(put: Put, make: Make, kylin: TargetProfile) -> None:
    user = make(needed=["liba.so"], runpath="$ORIGIN").build()
    library = make(soname="liba.so.1").build()
    links = {
        "lib/liba.so": special("lib/liba.so", tarfile.SYMTYPE, "./liba.so.1"),
        "lib/liba.so.1": special("lib/liba.so.1", tarfile.LNKTYPE, "store/liba.so.1.2"),
    }
    path = put("a.tar", tar({"store/liba.so.1.2": library, **links, "lib/x.so": user}))
    assert audit([path], kylin).findings == ()


def test_a_bundle_in_a_tar_is_a_bundle(put: Put, make: Make, kylin: TargetProfile) -> None:
    c = {"needed": ["libc.so.6"], "needs": {"libc.so.6": {"GLIBC_2.36": []}}}
    loader = "/lib/ld-linux-aarch64.so.1"
    libc = make(soname="libc.so.6", interpreter=loader, provides=["GLIBC_2.36"]).build()
    members = {
        "b-1/plan.json": b"{}",
        "b-1/runtime/lib/sys/libc.so.6": libc,
        "b-1/runtime/lib/sys/ld.so": make(soname="ld-linux-aarch64.so.1").build(),
        "b-1/runtime/libexec/python3.11": make(kind=2, interpreter=loader, **c).build(),
        "b-1/app/x.so": make(needed=["libz.so.1"]).build(),
    }
    path = put("b-1.tar", tar(members))
    report = audit([path], kylin)
    assert report.subject == "b-1"
    assert [(f.code, f.path) for f in report.findings] == [("closure.missing", f"{path}!b-1/app/x.so")]


BAD_NAMES = ["../x", "a/../../x", "/etc/passwd", "a/" + "n" * 256, "n/" * 2500 + "x"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lead_out_are_errors_and_nothing_is_written(
    put: Put, make: Make, kylin: TargetProfile, tmp_path: Path, name: str
) -> None:
    path = put("in/a.tar", tar({name: make().build(), "ok.so": make(machine=62).build()}, form=tarfile.PAX_FORMAT))
    assert _codes(audit([path], kylin)) == [("arch.machine", "error"), ("archive.path", "error")]
    path.unlink()
    contents = _opened(tmp_path, put("in/b.zip", zipped({name: make().build()})))
    assert contents.faults["path"] == [name]
    assert contents.files == []
    assert {each.name for each in tmp_path.rglob("*")} == {"in", "b.zip", "opened"}


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "../.."])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_out_of_the_archive_are_never_made(
    put: Put, kylin: TargetProfile, tmp_path: Path, target: str, kind: bytes
) -> None:
    path = put("a.tar", tar({"d/l": special("d/l", kind, target), "d/l/x": b"\x7fELF through the link"}))
    assert ("archive.link", "warning") in _codes(audit([path], kylin))
    contents = _opened(tmp_path, path)
    assert not any(each.is_symlink() for each in contents.folder.rglob("*"))
    assert (contents.folder / "d/l/x").is_file()


def test_links_in_circles_lead_nowhere(put: Put, make: Make, kylin: TargetProfile) -> None:
    links = {name: special(name, tarfile.SYMTYPE, to) for name, to in (("a.so", "b.so"), ("b.so", "a.so"))}
    user = make(needed=["a.so"], runpath="$ORIGIN").build()
    path = put("a.tar", tar({**links, "x.so": user}))
    assert _codes(audit([path], kylin)) == [("closure.missing", "error")]


def test_absolute_links_of_a_debian_package_count_from_its_top(put: Put, kylin: TargetProfile) -> None:
    data = tar({"usr/l": special("usr/l", tarfile.SYMTYPE, "/etc/alternatives/l")})
    assert audit([put("a.deb", deb(lzma.compress(data)))], kylin).findings == ()


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE])
def test_devices_and_their_like_are_not_made(put: Put, kylin: TargetProfile, tmp_path: Path, kind: bytes) -> None:
    path = put("a.tar", tar({"dev": special("dev", kind)}))
    assert _codes(audit([path], kylin)) == [("archive.kind", "warning")]
    assert list(_opened(tmp_path, path).folder.iterdir()) == []


def test_zip_members_can_be_links_and_devices_too(put: Put, kylin: TargetProfile) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, mode, content in (("l", 0o120777, "/etc"), ("dev", 0o020666, "")):
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, mode << 16
            archive.writestr(info, content)
    assert _codes(audit([put("a.zip", stream.getvalue())], kylin)) == [
        ("archive.kind", "warning"),
        ("archive.link", "warning"),
    ]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_is_said_and_the_last_is_judged(put: Put, make: Make, kylin: TargetProfile) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.so", make().build())
        archive.writestr("x.so", make(machine=62).build())
    assert _codes(audit([put("a.zip", stream.getvalue())], kylin)) == [
        ("arch.machine", "error"),
        ("archive.duplicate", "warning"),
    ]


def test_a_name_that_is_a_file_and_a_folder_is_said(put: Put, make: Make, kylin: TargetProfile) -> None:
    path = put("a.tar", tar({"x": make().build(), "x/y.so": make().build()}))
    assert _codes(audit([path], kylin)) == [("archive.duplicate", "warning")]


@pytest.mark.parametrize("suffix", [".zip", *COMPRESSED])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_an_archive_that_is_cut_off_is_an_error(
    put: Put, make: Make, kylin: TargetProfile, suffix: str, share: float
) -> None:
    members = {f"n{index}": bytes([index]) * 5000 for index in range(20)}
    data = zipped(members) if suffix == ".zip" else COMPRESSED[suffix](tar({**members}))
    cut = put(f"a{suffix}", data[: int(len(data) * share)])
    if suffix == ".tar" and share == 0.97:  # so much is missing of the padding behind the end mark only
        assert audit([cut], kylin).findings == ()
        return
    assert _codes(audit([cut], kylin))[0] == ("archive.damaged", "error")


def test_a_broken_archive_in_a_folder_is_a_warning(put: Put, kylin: TargetProfile) -> None:
    path = put("d/a.zip", b"PK\3\4 not really")
    assert _codes(audit([path.parent], kylin)) == [("archive.damaged", "warning")]


@pytest.mark.parametrize("name", ["a.whl", "a.zip", "a.tar", "a.tar.gz", "a.deb"])
@pytest.mark.parametrize("content", [b"", b"x", b"hello, world" * 100, b"\x1f\x8b", b"PK", b"\x7fELF" * 300])
def test_what_is_no_archive_at_all_is_damaged(put: Put, kylin: TargetProfile, name: str, content: bytes) -> None:
    codes = [code for code, _ in _codes(audit([put(name, content)], kylin)) if not code.startswith("elf.")]
    assert codes == ["archive.damaged"]


def test_one_bad_member_of_a_zip_does_not_hide_the_others(put: Put, make: Make, kylin: TargetProfile) -> None:
    data = bytearray(zipped({"bad": b"b" * 999, "x.so": make(machine=62).build()}, zipfile.ZIP_STORED))
    data[data.index(b"bbb") + 5] ^= 1
    assert _codes(audit([put("a.zip", bytes(data))], kylin)) == [
        ("arch.machine", "error"),
        ("archive.damaged", "error"),
    ]


def test_encrypted_members_are_said(put: Put, kylin: TargetProfile) -> None:
    data = bytearray(zipped({"x": b"secret"}))
    at = data.index(b"PK\1\2")
    data[6] |= 1
    data[at + 8] |= 1
    (finding,) = audit([put("a.zip", bytes(data))], kylin).findings
    assert (finding.code, "encrypted" in dict(finding.values)["what"]) == ("archive.damaged", True)


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2"])
def test_bombs_are_left_unread(put: Put, kylin: TargetProfile, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(limits, "_FREE", 1 << 20)
    payload = b"\x7fELF" + bytes(6 << 20)
    data = zipped({"x": payload}) if suffix == ".zip" else COMPRESSED[suffix](tar({"x": payload}))
    assert len(data) < 20_000
    assert ("archive.bomb", "error") in _codes(audit([put(f"a{suffix}", data)], kylin))


def test_a_bomb_in_a_member_that_is_only_passed_over(
    put: Put, kylin: TargetProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_FREE", 1 << 20)
    info = tarfile.TarInfo("zeros")
    info.size = 1 << 50
    head = info.tobuf(tarfile.GNU_FORMAT)
    assert _codes(audit([put("a.tar.gz", gzip.compress(head + bytes(4096)))], kylin)) == [("archive.bomb", "error")]


def test_archives_nested_without_end_are_left(put: Put, kylin: TargetProfile) -> None:
    data = b"x"
    for depth in range(6):
        data = zipped({f"{depth}.zip": data})
    assert ("archive.bomb", "error") in _codes(audit([put("a.zip", data)], kylin))


def test_all_archives_share_one_budget(tmp_path: Path, put: Put) -> None:
    path, budget = put("a.tar", tar({"x": b"\x7fELF" + bytes(90_000)})), Budget(150_000)
    for name, faults in (("one", {}), ("two", {"bomb"})):
        folder = tmp_path / name
        folder.mkdir()
        assert set(unpack(path, folder, budget).faults) == set(faults)


def test_too_many_members_end_the_reading(put: Put, kylin: TargetProfile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MEMBERS", 50)
    for name, data in (
        ("a.tar", tar({f"n{index}": b"" for index in range(60)})),
        ("a.zip", zipped({f"n{index}": b"" for index in range(60)})),
    ):
        assert _codes(audit([put(name, data)], kylin)) == [("archive.bomb", "error")]


def test_a_zip_directory_that_claims_gigabytes_is_not_read(put: Put, kylin: TargetProfile) -> None:
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xF0000000, 0, 0)
    assert _codes(audit([put("a.zip", b"PK\3\4" + bytes(64) + end)], kylin)) == [("archive.bomb", "error")]


def test_an_extended_header_that_claims_gigabytes_is_not_read(put: Put, kylin: TargetProfile) -> None:
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
        info = special("x", kind)
        info.size = 1 << 33
        assert _codes(audit([put("a.tar", info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))], kylin)) == [
            ("archive.damaged", "error")
        ]


def test_ten_thousand_members_take_no_time(put: Put, kylin: TargetProfile) -> None:
    path = put("a.zip", zipped({f"d{index % 100}/n{index}": b"x" for index in range(10_000)}, zipfile.ZIP_STORED))
    started = time.monotonic()
    report = audit([path], kylin)
    assert report.findings == ()
    assert report.files == 10_001
    assert time.monotonic() - started < 5


def test_an_unreadable_archive_is_bad_input(put: Put, kylin: TargetProfile, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("a.zip", zipped({"x": b""}))
    original = Path.open

    def refuse(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self.name == "a.zip":
            raise PermissionError(13, "Permission denied", str(self))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(BadInputError) as caught:
        audit([path], kylin)
    assert caught.value.key == "file.unreadable"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a", "a"), ("./a//b/", "a/b"), ("a/./b", "a/b"), ("..", None), ("/a", None), ("a\0b", None), ("", None)],
)
def test_names_are_cleaned(name: str, expected: str | None) -> None:
    assert clean(name) == expected


@given(st.text(alphabet="ab./", max_size=12), st.text(alphabet="ab./", max_size=12), st.booleans(), st.booleans())
@example("d/l", "..", False, False)
def test_no_link_leads_out(name: str, target: str, hard: bool, rooted: bool) -> None:
    place = clean(name)
    found = lead(place, target, hard=hard, rooted=rooted) if place else None
    assert found is None or (".." not in found.split("/") and not found.startswith("/"))


SEEDS = sorted(DATA.glob("*"))  # what tests/fuzz/fuzz_audit.py found


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_archives_never_raise(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(_whole()))
    name, content = whole
    at = data.draw(st.integers(0, len(content) - 1))
    patch = data.draw(st.binary(max_size=8))
    cut = data.draw(st.integers(0, 40))
    hurt = content[:at] + patch + content[at + len(patch) :]
    folder = tmp_path_factory.mktemp("f")
    path = folder / f"a{name}"
    path.write_bytes(hurt[: max(0, len(hurt) - cut)])
    (folder / "out").mkdir()
    contents = unpack(path, folder / "out", Budget(64 << 20))
    assert not any(each.is_symlink() for each in folder.rglob("*"))
    assert {each.name for each in folder.iterdir()} == {path.name, "out"}
    assert contents.members >= 0


def _whole() -> list[tuple[str, bytes]]:
    members: dict[str, bytes | tarfile.TarInfo] = {
        "d/x.so": b"\x7fELF" + bytes(300),
        "l": special("l", tarfile.SYMTYPE, "d/x.so"),
        "long" * 40: b"text",
    }
    plain = tar(members, form=tarfile.PAX_FORMAT)
    forms = [(suffix, COMPRESSED[suffix](plain)) for suffix in (".tar", ".tar.gz", ".tar.xz", ".tar.zst", ".deb")]
    return [*forms, (".zip", zipped({"d/x.so": b"\x7fELF" + bytes(300), "e": b"text" * 99}))]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_inputs_that_once_were_trouble(seed: Path, kylin: TargetProfile) -> None:
    started = time.monotonic()
    audit([seed], replace(kylin, page_size=4096))
    assert time.monotonic() - started < 5


def test_scratch_space_goes_with_its_run_and_that_of_killed_runs_with_the_next(
    put: Put, make: Make, kylin: TargetProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "tmp"
    left, busy = scratch / ".sampan-audit.part-left", scratch / ".sampan-audit.part-busy"
    for place in (left, busy):
        (place / "0").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    handle = os.open(busy, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        audit([put("a.zip", zipped({"x.so": make().build()}))], kylin)
    finally:
        os.close(handle)
    assert list(scratch.iterdir()) == [busy]


def test_scratch_space_that_another_run_took_for_abandoned_is_made_anew(
    put: Put, make: Make, kylin: TargetProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    plain = tempfile.mkdtemp

    def raced(**options: Any) -> str:
        made.append(plain(**options))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "mkdtemp", raced)
    assert audit([put("a.zip", zipped({"x.so": make().build()}))], kylin).elf_files == 1
    assert len(made) == 2


def test_set_id_bits_are_seen_in_a_tar_and_not_given_to_what_is_unpacked(
    tmp_path: Path, make: Make, kylin: TargetProfile
) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        for name, mode in (("plain", 0o755), ("set-uid", 0o4755), ("set-gid", 0o2755)):
            data = make().build()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            archive.addfile(info, io.BytesIO(data))
    found = audit([path], kylin).findings
    assert [(one.code, one.path.rpartition("!")[2]) for one in found] == [
        ("mode.set-id", "set-gid"),
        ("mode.set-id", "set-uid"),
    ]
    folder = tmp_path / "unpacked"
    folder.mkdir()
    contents = unpack(path, folder, Budget())
    assert contents.set_id == {"set-uid", "set-gid"}
    assert not [each for each in folder.iterdir() if each.stat().st_mode & 0o6000]
